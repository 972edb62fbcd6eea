"""What is known about common programs: subcommands, what they run besides themselves, and which only read.

The tables are data. A program that is in none of them is treated with care.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Final

_HAS_SUBCOMMANDS: Final = frozenset(
    "apt apt-get argocd aws az biome brew bun bundle cargo cargo-nextest composer conda dart deno dnf docker doctl "  # noqa: SIM905
    "dotnet flutter flux fly flyctl fossil gcloud gem gh git glab go golangci-lint gradle hatch helm heroku hg hugo "
    "ibmcloud jj jupyter k9s kubectl launchctl lerna mise mix mvn nerdctl netlify npm nx oc oci pacman pdm pip pip3 "
    "pipenv pipx pixi pnpm podman poetry pre-commit prisma rails ruff rustup rye sam sbt serverless snap stack svn "
    "swift systemctl terraform tofu turbo uv vercel wrangler yarn zig".split()
)
LETTERS_ARE_NAMES: Final = frozenset(("go", "find", "terraform", "tofu", "tsc", "java", "actionlint"))
"""Programs whose options have one dash and a long name: `-exec` is not `-e -x -e -c`."""

# Options before the subcommand that take a value as the next word.
_VALUED_GLOBALS: Final = {
    "git": {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix", "--config-env"},
    "docker": {"-H", "--host", "-c", "--context", "--config", "-l", "--log-level"},
    "kubectl": {"-n", "--namespace", "--context", "--cluster", "--kubeconfig", "-s", "--server", "--user"},
    "npm": {"--prefix", "-C", "-w", "--workspace", "--registry", "--userconfig"},
    "pnpm": {"--prefix", "-C", "--dir", "--filter", "-F"},
    "yarn": {"--cwd"},
    "cargo": {"--config", "-C", "-Z", "--color"},
    "gh": {"-R", "--repo"},
    "aws": {"--profile", "--region", "--output", "--endpoint-url", "--query"},
    "helm": {"-n", "--namespace", "--kube-context", "--kubeconfig"},
    "terraform": set(),
    "go": {"-C"},
    "uv": {"--directory", "--project", "--config-file", "--cache-dir"},
    "pip": {"--python", "--log", "--proxy"},
    "systemctl": {"-H", "--host", "-M", "--machine"},
}
_FLAG_GLOBALS: Final = {
    "git": {"-p", "-P", "--paginate", "--no-pager", "--bare", "--no-replace-objects", "--literal-pathspecs"},
    "npm": {"-s", "--silent", "-g", "--global", "--workspaces"},
    "docker": {"-D", "--debug", "--tls"},
    "cargo": {"-v", "-q", "--verbose", "--quiet", "--offline", "--locked", "--frozen"},
}

# Another name of the same subcommand.
_ALIASES: Final = {
    "git": {"send-pack": "push", "http-push": "push"},
    "npm": {
        **dict.fromkeys("i in ins inst insta instal isnt isnta isntal add".split(), "install"),  # noqa: SIM905
        **dict.fromkeys("un unlink remove rm r".split(), "uninstall"),  # noqa: SIM905
        **dict.fromkeys("t tst".split(), "test"),  # noqa: SIM905
        **dict.fromkeys("rum urn run-script".split(), "run"),  # noqa: SIM905
        "x": "exec",
        "ln": "link",
        "up": "update",
        "upgrade": "update",
    },
    "cargo": {"b": "build", "c": "check", "d": "doc", "r": "run", "t": "test", "rm": "remove"},
    "helm": {"del": "uninstall", "delete": "uninstall", "un": "uninstall", "up": "upgrade"},
    "hg": {"ci": "commit", "co": "checkout", "up": "update"},
    "svn": {"ci": "commit", "co": "checkout", "up": "update", "rm": "delete", "del": "delete", "remove": "delete"},
    "pip": {},
}
_GIT_COMMANDS: Final = frozenset(
    "add am annotate apply archive bisect blame branch bundle cat-file check-attr check-ignore check-mailmap "  # noqa: SIM905
    "check-ref-format checkout checkout-index cherry cherry-pick citool clean clone column commit commit-graph "
    "commit-tree config count-objects credential daemon describe diff diff-files diff-index diff-tree difftool "
    "fast-export fast-import fetch fetch-pack filter-branch fmt-merge-msg for-each-ref format-patch fsck gc "
    "get-tar-commit-id grep gui hash-object help hook http-fetch http-push index-pack init init-db instaweb "
    "interpret-trailers log ls-files ls-remote ls-tree mailinfo mailsplit maintenance merge merge-base merge-file "
    "merge-index merge-tree mergetool mktag mktree multi-pack-index mv name-rev notes pack-objects pack-redundant "
    "pack-refs patch-id prune prune-packed pull push quiltimport range-diff read-tree rebase reflog remote repack "
    "replace request-pull rerere reset restore rev-list rev-parse revert rm send-email send-pack shortlog show "
    "show-branch show-index show-ref sparse-checkout stage stash status stripspace submodule switch symbolic-ref tag "
    "unpack-file unpack-objects update-index update-ref update-server-info var verify-commit verify-pack verify-tag "
    "version whatchanged worktree write-tree lfs".split()
)

_NO_OTHER_SUBCOMMAND: Final = {
    "cargo": frozenset(("bench", "build", "check", "clippy", "doc", "fmt", "run", "test")),
    "docker": frozenset(("build", "cp", "exec", "images", "inspect", "logs", "ps", "pull", "push", "run", "start")),
    "git": frozenset((
        *("add", "blame", "branch", "checkout", "commit", "diff", "log", "ls-files", "mv", "reset", "restore"),
        *("rev-parse", "rm", "show", "stash", "status", "switch", "tag"),
    )),
    "kubectl": frozenset(("apply", "describe", "exec", "get", "logs", "top")),
    "npm": frozenset(("ci", "exec", "install", "run", "test")),
}  # fmt: skip
"""Whatever their other arguments are, these are no other subcommand of the same program."""
_INTERPRETER: Final = re.compile(
    r"(python|pypy|ipython|perl|raku|ruby|irb|node|nodejs|deno|bun|tsx|ts-node|php|lua|luajit|tclsh|wish|expect|guile|"
    r"racket|scheme|julia|rscript|octave|groovy|scala|kotlin|jshell|java|elixir|iex|erl|escript|swipl|runghc|ghci|"
    r"runhaskell|osascript|pwsh|powershell|cmd|nu|elvish|xonsh|gdb|lldb|sqlite|psql|mysql|mongosh|redis-cli|duckdb|"
    r"(?:ba|da|z|k|a|mk|fi|c|tc|rba|ya)?sh)[-0-9.]*[a-z]?\Z"
)
# Subcommands that run a program, script or code that their arguments name, or give out or change credentials.
# `ecs/execute-command` is a subcommand below another.
_RUNNING_SUBCOMMANDS: Final = {
    "aws": "ecs/execute-command ssm/start-session ssm/send-command configure/set lambda/invoke",
    "az": "vm/run-command container/exec webapp/ssh",
    "brew": "sh ruby services",
    "bun": "x create exec",
    "bundle": "exec",
    "cargo": "script",
    "composer": "exec run-script",
    "conda": "run",
    "dart": "run",
    "deno": "run eval task",
    "docker": "run exec container/run container/exec compose/run compose/exec service/create stack/deploy",
    "dotnet": "exec script tool run",
    "fly": "ssh console",
    "flyctl": "ssh console",
    "gcloud": "compute/ssh compute/scp",
    "gem": "exec",
    "gh": "alias extension codespace auth secret api",
    "git": "bisect/run submodule/foreach filter-branch difftool mergetool instaweb hook for-each-repo merge-index "
    "remote-ext remote-fd credential credential-cache credential-store send-email maintenance daemon shell web--browse",
    "go": "run tool generate",
    "gradle": "run",
    "hatch": "run shell",
    "helm": "plugin",
    "heroku": "run ps:exec",
    "kubectl": "exec run debug cp attach edit",
    "lerna": "exec",
    "mise": "exec x run",
    "mix": "run do eval cmd",
    "nerdctl": "run exec container/run container/exec compose/run compose/exec",
    "npm": "exec explore create init",
    "nx": "exec",
    "oc": "exec rsh run debug cp",
    "pdm": "run",
    "pipenv": "run shell",
    "pipx": "run runpip",
    "pixi": "run exec shell",
    "pnpm": "exec dlx create",
    "podman": "run exec container/run container/exec compose/run compose/exec machine/ssh",
    "poetry": "run shell",
    "pre-commit": "try-repo",
    "rails": "runner r console c",
    "rustup": "run",
    "rye": "run",
    "snap": "run",
    "stack": "exec runghc runhaskell script ghci",
    "swift": "run",
    "systemctl": "edit set-environment",
    "uv": "run tool x",
    "yarn": "exec dlx node create",
    "zig": "run",
}
# Programs that run the command in their arguments, and are not wrappers that the parser reads.
_LAUNCHERS: Final = re.compile(
    r"(?:asdf|aws-vault|bunx|bwrap|caffeinate|capsh|cgexec|chamber|choom|chpst|chronic|concurrently|dbus-run-session|"
    r"devbox|direnv|doppler|dotenv|dumb-init|envdir|expect|fd|fdfind|firejail|flatpak|gdb|gosu|hyperfine|incus|k3s|"
    r"ld-linux.*|ld\.so.*|lxc|minikube|multipass|nix|nix-shell|nodemon|npx|numactl|nvm|op|perf|pnpx|prlimit|proot|rbenv|"
    r"rlwrap|sandbox-exec|schroot|screen|setpriv|softlimit|sops|ssh|su-exec|systemd-nspawn|tini|tmux|tsh|uvx|vagrant|"
    r"valgrind|volta|watchexec|wsl|xvfb-run)\Z"
)
_TAKES_COMMANDS: Final = frozenset(
    "ansible awk bmake cmake dc ed emacs ex ftp gawk gmake gnuplot gradle just lftp m4 make mawk mutt nawk nc ncat "  # noqa: SIM905
    "ninja nmake nvim rake r scons sed gsed sftp socat task telnet vi view vim".split()
)
"""Build tools, editors and others that run commands from scripts in a language of their own."""
# The commands in their arguments run on another machine or in a container.
_ELSEWHERE: Final = frozenset(
    "aws az docker fly flyctl gcloud heroku incus kubectl lxc multipass nerdctl oc podman ssh tsh vagrant".split()  # noqa: SIM905
)
# What their arguments name is only installed or described: `apt install sudo` runs no sudo.
_PACKAGE_MANAGERS: Final = frozenset(
    "apt apt-get brew cargo composer conda dnf gem go npm pacman pip pip3 pnpm poetry snap uv yarn".split()  # noqa: SIM905
)
_ABOUT_PACKAGES: Final = frozenset("add info install list remove search show uninstall update upgrade view why".split())  # noqa: SIM905
_FILE_COMMANDS: Final = frozenset(
    ". : break chgrp chmod chown continue cp curl dd exit gunzip gzip kill killall let ln mv "  # noqa: SIM905
    "patch pkill pushd popd read return rm rmdir set shift source tee truncate unset wait".split()
)
"""They run no program that their arguments name, or the parser reads what they run."""

# They do not open files that their arguments name.
WITHOUT_FILES: Final = frozenset(
    "echo printf true false : test [ basename dirname seq sleep expr pwd date".split()  # noqa: SIM905
)
# They open files only to read them.
_READS_ONLY: Final = WITHOUT_FILES | frozenset(
    "bat cat cd cksum cloc cmp comm cut df diff du egrep fgrep file find grep head hexdump jq less ls md5sum nl od "  # noqa: SIM905
    "pushd readlink realpath rg sha1sum sha256sum sha512sum shellcheck sort stat strings tac tail tree uniq wc xxd "
    "yamllint".split()
)
_GIT_READS: Final = frozenset(
    "add annotate blame cat-file check-ignore commit describe diff grep log ls-files ls-tree rev-list rev-parse "  # noqa: SIM905
    "shortlog show show-ref status".split()
)
# The first argument is a pattern, not a path.
PATTERN_FIRST: Final = frozenset("grep egrep fgrep rg ag ack sed gsed awk gawk mawk jq yq tr expr".split())  # noqa: SIM905
FREE_TEXT_OPTIONS: Final = frozenset(("-m", "-am", "--message", "--title", "--body", "--notes", "--subject", "--grep"))


@lru_cache(maxsize=4_096)
def program_of(word: str) -> str:
    """The name to look up: without folder, and in lower case since some file systems ignore case."""
    return word.rsplit("/", 1)[-1].lower().removesuffix(".exe")


def subcommand_at(words: Sequence[str]) -> int | None:
    """The place of the subcommand of a program that has some; None where an option leaves it uncertain."""
    if len(words) == 1 or not words[1].startswith("-"):
        return 1
    program = program_of(words[0])
    valued, flags = _VALUED_GLOBALS.get(program, set()), _FLAG_GLOBALS.get(program, set())
    at = 1
    while at < len(words) and words[at].startswith("-"):
        if words[at] in valued:
            at += 2
        elif words[at] in flags or words[at].partition("=")[0] in valued:
            at += 1
        else:
            return None
    return at


def has_subcommands(program: str) -> bool:
    return program in _HAS_SUBCOMMANDS


def running_subcommand(words: Sequence[str]) -> int | None:
    """The place of the word that makes a command run what its arguments name: `exec` of `docker exec`."""
    program = program_of(words[0])
    if not (running := _running_subcommands(program)):
        return None
    at = subcommand_at(words)
    # An unknown option can have a value: then every word can be the subcommand.
    places = range(1, len(words)) if at is None else range(at, min(at + 1, len(words)))
    for place in places:
        for second in running.get(same_subcommand(program, words[place]), ()):
            if not second:
                return place
            if second in words[place + 1 :]:
                return words.index(second, place + 1)
    return None


@cache
def _running_subcommands(program: str) -> dict[str, list[str]]:
    """What can follow a subcommand so that it runs its arguments; "" if it always does."""
    found: dict[str, list[str]] = {}
    for entry in _RUNNING_SUBCOMMANDS.get(program, "").split():
        first, _, second = entry.partition("/")
        found.setdefault(first, []).append(second)
    return found


def runs_arguments(words: Sequence[str]) -> bool:
    """Whether a command runs the program that its arguments name."""
    return _LAUNCHERS.match(program_of(words[0])) is not None or running_subcommand(words) is not None


def is_no_other_subcommand(words: Sequence[str]) -> bool:
    """Whether unknown arguments cannot make a command another subcommand of its program."""
    known = _NO_OTHER_SUBCOMMAND.get(program_of(words[0]))
    if known is None or (at := subcommand_at(words)) is None or at >= len(words):
        return False
    return words[at] in known and "-c" not in words[:at]


def runs_elsewhere(words: Sequence[str]) -> bool:
    return program_of(words[0]) in _ELSEWHERE


def only_names_things(words: Sequence[str]) -> bool:
    """Whether the arguments of a command are surely no commands: packages, files, processes."""
    program = program_of(words[0])
    if program in _PACKAGE_MANAGERS:
        at = subcommand_at(words)
        return at is not None and at < len(words) and same_subcommand(program, words[at]) in _ABOUT_PACKAGES
    return program in _FILE_COMMANDS


def same_subcommand(program: str, word: str) -> str:
    """The usual name of a subcommand."""
    return _ALIASES.get(program, {}).get(word, word)


def is_known_subcommand(program: str, word: str) -> bool:
    """False for a word that can be an alias of the user's, such as `git p`."""
    return program != "git" or word in _GIT_COMMANDS


def only_reads(words: Sequence[str]) -> bool:
    """Whether the command, with usual options, opens the files that its arguments name only to read them."""
    program = program_of(words[0])
    if program == "git":
        at = subcommand_at(words)
        return at is not None and at < len(words) and words[at] in _GIT_READS
    return program in _READS_ONLY


def takes_commands(words: Sequence[str]) -> bool:
    """Whether a text among the arguments or in the input of a command is code rather than prose."""
    return runs_arguments(words) or runs_script(words) or program_of(words[0]) in _TAKES_COMMANDS


def runs_script(words: Sequence[str]) -> bool:
    """Whether the command runs a file that an argument names: `bash x`, `source x`, `python x`."""
    program = program_of(words[0])
    return program in {"source", ".", "exec"} or _INTERPRETER.match(program) is not None
