"""Finds arguments that make an allowed program write a file or run another program: `git grep -O`, `rg --pre`.

`risky_argument` looks at the words after those that a rule names. The tables have the programs that people allow; for
every other program, an option is risky if its name says so (`--exec`, `--output`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from punchlist.toolcalls.shell.known_commands import is_known, may_take_option
from punchlist.toolcalls.shell.options import option_scope
from punchlist.toolcalls.shell.programs import LETTERS_ARE_NAMES, program_of, running_subcommand, subcommand_at

# Letters, and long names with one dash or two. A name covers the beginnings that programs accept for it.
_RISKY: Final = {
    "apt": "o option c config-file",
    "apt-get": "o option c config-file",
    "base64": "o output",
    "cloc": "report-file out extract-with config diff-alignment sql sql-style vcs processes",
    "git": "c exec-path config-env git-dir work-tree",
    "git checkout-index": "prefix",
    "git fast-export": "export-marks",
    "git help": "w web i info",
    "git init": "template",
    "git read-tree": "index-output",
    "git rev-list": "output",
    "git archive": "o output remote exec",
    "git blame": "contents",
    "git clone": "u upload-pack c config template separate-git-dir",
    "git commit": "t template F file",
    "git diff": "output ext-diff textconv",
    "git fetch": "upload-pack",
    "git format-patch": "o output output-directory",
    "git grep": "O open-files-in-pager",
    "git log": "output ext-diff textconv",
    "git ls-remote": "upload-pack exec",
    "git pull": "upload-pack",
    "git push": "f force force-with-lease mirror d delete receive-pack exec",
    "git rebase": "x exec",
    "git reflog": "output",
    "git shortlog": "output",
    "git show": "output ext-diff textconv",
    "git stash": "output",
    "git branch": "edit-description",
    "go": "exec toolexec o overlay vettool modfile ldflags gcflags asmflags gccgoflags "
    "cpuprofile memprofile coverprofile blockprofile mutexprofile trace outputdir c pkgdir",
    "go env": "w u",
    "make": "eval f file makefile I include-dir E",
    "cargo": "config Z manifest-path target-dir out-dir artifact-dir",
    "npm": "script-shell node-options shell prefix userconfig globalconfig git",
    "pnpm": "script-shell node-options shell-emulator",
    "yarn": "script-shell use-yarnrc",
    "gradle": "I init-script b build-file c settings-file p project-dir",
    "hg": "config config-file debugger R repository cwd",
    "jj": "config config-file config-toml R repository",
    "less": "o O k",
    "mvn": "s settings gs global-settings t toolchains f file",
    "pyright": "pythonpath typeshedpath venvpath createstub p project",
    "pytest": "p c config-file o override-ini pdbcls rootdir basetemp confcutdir pastebin debug junitxml junit-xml "
    "html log-file import-mode",
    "rubocop": "r require o out f format plugin c config",
    "stylelint": "custom-syntax custom-formatter plugins config config-basedir o output-file f formatter",
    "markdownlint": "r rules o output c config",
    "svn": "config-option config-dir diff-cmd diff3-cmd editor-cmd",
    "zig": "test-cmd test-cmd-bin zig-lib-dir",
    "mypy": "config-file python-executable install-types custom-typeshed-dir cache-dir junit-xml html-report "
    "xml-report any-exprs-report cobertura-xml-report linecount-report linecoverage-report lineprecision-report "
    "txt-report xslt-html-report xslt-txt-report",
    "ruff": "config o output-file",
    "black": "config",
    "eslint": "c config rulesdir plugin resolve-plugins-relative-to f format o output-file parser",
    "prettier": "config plugin plugin-search-dir",
    "tsc": "outFile outDir project p build b plugins",
    "rg": "pre hostname-bin",
    "curl": "o output O remote-name remote-name-all output-dir T upload-file F form d data data-binary data-ascii "
    "data-urlencode json D dump-header c cookie-jar K config trace trace-ascii stderr libcurl etag-save hsts alt-svc",
    "wget": "O output-document o output-file a append-output P directory-prefix i input-file e execute post-file "
    "body-file config use-askpass save-cookies",
    "node": "e eval p print r require import loader experimental-loader test-reporter-destination",
    "sort": "o output compress-program T temporary-directory files0-from",
    "tree": "o",
    **dict.fromkeys(("du", "wc"), "files0-from"),
    "shuf": "o output",
    "iconv": "o output",
    "xxd": "r",
    "yq": "i inplace s split-exp split-exp-file from-file",
    "date": "s set",
    "hostname": "F b file boot",
    "bat": "pager",
    "diff": "to-file",
    "file": "C compile m magic-file",
    "find": "exec execdir ok okdir delete fprint fprint0 fprintf fls",
    "fd": "x X exec exec-batch",
    "sed": "i in-place f file",
    "awk": "f file i include l load E exec D debug d dump-variables o pretty-print p profile",
    "tar": "I use-compress-program to-command checkpoint-action rsh-command F info-script new-volume-script",
    "rsync": "e rsh rsync-path",
    "ssh": "o F",
    "man": "P pager",
    "jq": "L",
    "terraform": "chdir plugin-dir out",
    "helm": "post-renderer",
    "kubectl": "kubeconfig",
    "docker": "config",
    "dotnet": "o output p property s settings l logger test-adapter-path collect a",
    "cmake": "P",
    "gofmt": "w cpuprofile",
    "shfmt": "w write",
    "isort": "settings-path settings-file",
    "pylint": "load-plugins init-hook rcfile output",
    "flake8": "config output-file",
    "gh": "editor",
}
_NAMED_RISKY: Final = re.compile(
    r"(?:.*-)?(?:exec|eval|command|cmd|shell|script|hook|pager|editor|preload|require|loader|output|outfile|output-file|"
    r"output-dir|out|rsh|program|pre|post-renderer|plugins?|interpreter|launcher|wrapper|log-?file|report-file|smtp-server|"
    r"init-script|adapter-path|config-option|ext-diff|textconv)\Z"
)
_FORMATS: Final = re.compile(
    r"(?:json|jsonl|ndjson|yaml|yml|text|table|wide|name|short|concise|full|grouped|github|gitlab|csv|tsv|xml|none|raw|"
    r"(?:jsonpath|custom-columns|go-template)(?:-[a-z]+)?=.*)\Z"
)
_FULL_NAMES: Final = frozenset(
    "cargo docker eslint fd gh go helm kubectl npm pnpm prettier pytest rg ruff terraform tsc yarn".split()  # noqa: SIM905
)
"""Programs that do not accept the beginning of a long name."""
_SECOND_IS_WRITTEN: Final = frozenset(("uniq", "xxd"))
_RISKY_WORDS: Final = {
    name: re.compile(pattern)
    for names, pattern in {
        "make gmake just": r"[A-Za-z_][A-Za-z0-9_]*[:?+!]?=",
        "git": "ext::|fd::",
        "cargo": r"\+",
        "date": r"(?!\+)",
        "hostname": "",
        "less more": r"\+",
        "mvn": ".*:",
        # They read more arguments from a file.
        "dotnet javac java mypy pylint pyright pytest ruff tsc": "@",
    }.items()
    for name in names.split()
} | {scope: re.compile("[+:]") for scope in ("git push", "git fetch", "git pull")}
"""Arguments that are no options, by program or subcommand."""
# Scripts of sed that only select lines or substitute text.
_SED: Final = re.compile(
    r"(?:[0-9$,~+ !]++|/[^/]*+/)*+[pdqn=]?\Z|[0-9,$]*+s([/|#,])(?:(?!\1).)*+\1(?:(?!\1).)*+\1[gip0-9]*+\Z"
)
_BLANK: Final = re.compile(r"[\s;{}]")
_AWK: Final = re.compile(r"system|getline|[|>@]|printf?\s*\(?.*>")


_SAME: Final = {"gsed": "sed", **dict.fromkeys(("gawk", "mawk", "nawk"), "awk")}


@lru_cache(maxsize=64)
def risky_argument(words: tuple[str, ...], covered: int) -> str | None:
    """The first argument after the `covered` words that writes a file or runs a program; None if there is none."""
    program, scope = program_of(words[0]), option_scope(words)
    if program in _SAME:
        program = scope = _SAME[program]
    surely_none = is_known(words) and may_take_option(words)
    found = None if surely_none else _risky_option(program, scope, words, covered)
    return found or next(_risky_words(program, scope, words, covered), None)


def _risky_option(program: str, scope: str, words: tuple[str, ...], covered: int) -> str | None:
    if (running := running_subcommand(words)) is not None and running >= covered:
        return words[running]
    names = _names_of(program, scope)
    rest = words[covered:]
    for at, word in enumerate(rest):
        if word == "--" and program not in {"npm", "pnpm", "yarn"} and not (at and _may_take_value(rest[at - 1])):
            return None
        if word.startswith("-") and _is_risky_option(program, scope, names, word, rest[at + 1 : at + 2]):
            return word
    return None


def _may_take_value(word: str) -> bool:
    """Whether `--` after this word can be its value, as in `git log --author -- --output=x`."""
    return word.startswith("-") and "=" not in word


@lru_cache(maxsize=256)
def _names_of(program: str, scope: str) -> frozenset[str]:
    return frozenset(f"{_RISKY.get(program, '')} {_RISKY.get(scope, '')}".split())


def _is_risky_option(program: str, scope: str, names: frozenset[str], word: str, following: Sequence[str]) -> bool:
    name, equals, value = word.lstrip("-").partition("=")
    if not name:
        return False
    shown = value if equals else following[0] if following else ""
    if word.startswith("--") or program in LETTERS_ARE_NAMES:
        short = program in _FULL_NAMES
        if any(len(known) > 1 and (known == name or (not short and known.startswith(name))) for known in names):
            return True
        if program in LETTERS_ARE_NAMES and name in names:
            return True
        return bool(_NAMED_RISKY.match(name)) and not _FORMATS.match(shown)
    letters = {known for known in names if len(known) == 1}
    if name in names:
        return not (name in {"o", "f"} and _FORMATS.match(shown))
    if scope == "git grep" and name[0] == "O":
        return True
    return bool(letters & set(_cluster(program, name)))


def _cluster(program: str, letters: str) -> str:
    """The letters of an option that can be options: a value that is attached to a letter ends them."""
    valued = {
        "git": "mSGLU",
        "grep": "eABCmf",
        "rg": "eABCmgt",
        "head": "nc",
        "tail": "nc",
        "sort": "kt",
        "awk": "Fv",
    }.get(program)
    for at, letter in enumerate(letters):
        if valued and letter in valued:
            return letters[: at + 1]
    return letters


def is_sed(words: Sequence[str]) -> bool:
    return program_of(words[0]) in {"sed", "gsed"}


def sed_scripts(words: Sequence[str]) -> list[str]:
    """The arguments of sed that can be scripts which do more than select lines or substitute text."""
    found = [word for word in words[1:] if word.startswith("-") and len(word) > 2]
    plain = [at for at, word in enumerate(words) if at and not word.startswith("-")]
    found += [words[at] for at in plain if at == plain[0] or words[at - 1].startswith("-") or _BLANK.search(words[at])]
    return [word for word in found if not _SED.match(word)]


def _risky_words(program: str, scope: str, words: Sequence[str], covered: int) -> Iterator[str]:
    """Arguments that are not options and still write or run something."""
    rest = words[covered:]
    plain = [word for word in rest if not word.startswith("-")]
    if program == "sed":
        scripts = [word for at, word in enumerate(rest) if at and rest[at - 1] == "-e"] or plain[:1]
        yield from (script for script in scripts if not _SED.match(script))
    elif program == "awk":
        yield from (word for word in plain[:1] if _AWK.search(word))
    elif program in _SECOND_IS_WRITTEN:
        yield from plain[1:]
    elif scope == "git push":
        # A repository that is given by its address: a push to a folder runs the hooks in it.
        after = (subcommand_at(words) or 0) + 1
        operands = [word for word in words[after:] if not word.startswith("-")]
        yield from (word for word in operands[:1] if re.search(r"[/.:~\\]", word))
    for pattern in (_RISKY_WORDS.get(program), _RISKY_WORDS.get(scope) if scope != program else None):
        if pattern is not None:
            yield from filter(pattern.match, plain)
