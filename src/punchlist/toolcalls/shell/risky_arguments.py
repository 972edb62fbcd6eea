"""Finds arguments that make an allowed program write a file or run another program: `git grep -O`, `rg --pre`.

`risky_argument` looks at the words after those that a rule names. The tables have the programs that people allow; for
every other program, an option is risky if its name says so (`--exec`, `--output`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from punchlist.toolcalls.shell.options import option_scope
from punchlist.toolcalls.shell.programs import program_of

# Letters, and long names with one dash or two. A name covers the beginnings that programs accept for it.
_RISKY: Final = {
    "git": "c exec-path config-env",
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
    "go": "exec toolexec o overlay vettool modfile ldflags gcflags cpuprofile memprofile coverprofile outputdir",
    "make": "eval f file makefile I include-dir E",
    "cargo": "config Z manifest-path",
    "npm": "script-shell node-options shell prefix userconfig globalconfig git",
    "pnpm": "script-shell node-options shell-emulator",
    "yarn": "script-shell use-yarnrc",
    "pytest": "p c config-file o override-ini pdbcls rootdir basetemp confcutdir pastebin debug junitxml junit-xml",
    "mypy": "config-file python-executable install-types",
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
    "shuf": "o output",
    "iconv": "o output",
    "xxd": "r",
    "yq": "i inplace",
    "date": "s set",
    "hostname": "F b file boot",
    "bat": "pager",
    "diff": "to-file",
    "file": "C compile m magic-file",
    "find": "exec execdir ok okdir delete fprint fprint0 fprintf fls",
    "fd": "x X exec exec-batch",
    "sed": "i in-place f file",
    "awk": "f file i include l load",
    "tar": "I use-compress-program to-command checkpoint-action rsh-command F info-script new-volume-script",
    "rsync": "e rsh rsync-path",
    "ssh": "o F",
    "man": "P pager",
    "jq": "L",
    "terraform": "chdir plugin-dir out",
    "helm": "post-renderer",
    "kubectl": "kubeconfig",
    "docker": "config",
    "dotnet": "o output p property",
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
    r"output-dir|out|rsh|program|pre|post-renderer|plugin|interpreter|launcher|wrapper)\Z"
)
_FORMATS: Final = re.compile(
    r"(?:json|jsonl|ndjson|yaml|yml|text|table|wide|name|short|concise|full|grouped|github|gitlab|csv|tsv|xml|none|raw|"
    r"(?:jsonpath|custom-columns|go-template)(?:-[a-z]+)?=.*)\Z"
)
_LETTERS_ARE_NAMES: Final = frozenset(("go", "find", "terraform", "tsc", "java"))
"""Programs whose options have one dash and a long name: `-exec` is not `-e -x -e -c`."""
_FULL_NAMES: Final = frozenset(
    "cargo docker eslint fd gh go helm kubectl npm pnpm prettier pytest rg ruff terraform tsc yarn".split()  # noqa: SIM905
)
"""Programs that do not accept the beginning of a long name."""
_ASSIGNS: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*[:?+!]?=")
# Scripts of sed that only select lines or substitute text.
_SED: Final = re.compile(
    r"(?:[0-9$,~+ !]++|/[^/]*+/)*+[pdqn=]?\Z|[0-9,$]*+s([/|#,])(?:(?!\1).)*+\1(?:(?!\1).)*+\1[gip0-9]*+\Z"
)
_AWK: Final = re.compile(r"system|getline|[|>@]|printf?\s*\(?.*>")


def risky_argument(words: Sequence[str], covered: int) -> str | None:
    """The first argument after the `covered` words that writes a file or runs a program; None if there is none."""
    program, scope = program_of(words[0]), option_scope(words)
    names = _names_of(program, scope)
    rest = words[covered:]
    for at, word in enumerate(rest):
        if word == "--" and program not in {"npm", "pnpm", "yarn"}:
            break
        if word.startswith("-") and _is_risky_option(program, scope, names, word, rest[at + 1 : at + 2]):
            return word
    return next(_risky_words(program, scope, words, covered), None)


@lru_cache(maxsize=256)
def _names_of(program: str, scope: str) -> frozenset[str]:
    return frozenset(f"{_RISKY.get(program, '')} {_RISKY.get(scope, '')}".split())


def _is_risky_option(program: str, scope: str, names: frozenset[str], word: str, following: Sequence[str]) -> bool:
    name, equals, value = word.lstrip("-").partition("=")
    if not name:
        return False
    shown = value if equals else following[0] if following else ""
    if word.startswith("--") or program in _LETTERS_ARE_NAMES:
        short = program in _FULL_NAMES
        if any(len(known) > 1 and (known == name or (not short and known.startswith(name))) for known in names):
            return True
        if program in _LETTERS_ARE_NAMES and name in names:
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
    valued = {"git": "mSGLU", "grep": "eABCmf", "rg": "eABCmgt", "head": "nc", "tail": "nc", "sort": "kt"}.get(program)
    for at, letter in enumerate(letters):
        if valued and letter in valued:
            return letters[: at + 1]
    return letters


def _risky_words(program: str, scope: str, words: Sequence[str], covered: int) -> Iterator[str]:
    """Arguments that are not options and still write or run something."""
    rest = words[covered:]
    plain = [word for word in rest if not word.startswith("-")]
    if program in {"make", "gmake", "just"}:
        yield from (word for word in plain if _ASSIGNS.match(word))
    elif program == "git":
        yield from (word for word in plain if word.startswith(("ext::", "fd::")))
        if scope == "git push":
            yield from (word for word in plain if word[0:1] in {"+", ":"})
    elif program == "cargo":
        yield from (word for word in plain if word.startswith("+"))
    elif program == "uniq":
        yield from plain[1:]
    elif program == "date":
        yield from (word for word in plain if not word.startswith("+"))
    elif program == "hostname":
        yield from plain
    elif program == "sed":
        scripts = [word for at, word in enumerate(rest) if at and rest[at - 1] == "-e"] or plain[:1]
        yield from (script for script in scripts if not _SED.match(script))
    elif program in {"awk", "gawk", "mawk", "nawk"}:
        yield from (word for word in plain[:1] if _AWK.search(word))


def may_be_risky(words: Sequence[str]) -> bool:
    """Whether an unknown argument of this command could write a file or run a program."""
    program = program_of(words[0])
    return bool(_names_of(program, option_scope(words))) or program not in _HARMLESS


_HARMLESS: Final = frozenset(
    "cat ls head tail wc grep egrep fgrep stat du df cut tr nl tac rev basename dirname echo printf pwd test [ true "  # noqa: SIM905
    "false cksum md5sum sha1sum sha256sum realpath readlink which mkdir touch seq sleep comm cmp od strings".split()
)
