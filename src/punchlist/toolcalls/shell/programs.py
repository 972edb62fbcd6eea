"""What is known about common programs: subcommands, programs that can run anything, and programs that only read.

The tables are data. A program that is in none of them is treated with care: "always" covers its exact line only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

# Programs whose first words are subcommands, and how many words identify what they do.
_TWO: Final = frozenset(
    "apt apt-get brew bundle cargo cargo-nextest composer conda dart deno dnf dotnet flutter flyctl fossil gem git go "  # noqa: SIM905
    "golangci-lint gradle hatch helm hg hugo jj jupyter lerna mise mix mvn netlify npm nx pdm pip pip3 pipenv pipx "
    "pixi pnpm poetry pre-commit prisma rails rustup rye sam sbt serverless stack swift svn systemctl terraform tofu "
    "turbo uv vercel wrangler yarn zig bun launchctl snap pacman ruff biome".split()
)
_THREE: Final = frozenset("aws glab gh heroku kubectl k9s oc doctl docker podman nerdctl fly argocd flux".split())  # noqa: SIM905
_DEEP: Final = frozenset("az gcloud oci ibmcloud".split())  # noqa: SIM905
_MAX_DEEP_WORDS: Final = 5
# Container tools nest only below these; `docker ps` has two words.
_CONTAINER_GROUPS: Final = frozenset(
    "builder buildx compose config container context image manifest network node plugin secret service stack swarm "  # noqa: SIM905
    "system trust volume pod machine kube".split()
)
_CONTAINER_TOOLS: Final = frozenset(("docker", "podman", "nerdctl"))
# `npm run lint`: the script is part of what is covered.
_NAMES_A_SCRIPT: Final = frozenset(("run", "run-script", "exec", "task", "tool", "x"))

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

_INTERPRETER: Final = re.compile(
    r"(python|pypy|ipython|perl|raku|ruby|irb|node|nodejs|deno|bun|tsx|ts-node|php|lua|luajit|tclsh|wish|expect|guile|"
    r"racket|scheme|julia|rscript|octave|groovy|scala|kotlin|jshell|java|elixir|iex|erl|escript|swipl|runghc|ghci|"
    r"runhaskell|osascript|pwsh|powershell|cmd|nu|elvish|xonsh|gdb|lldb|sqlite|psql|mysql|mongosh|redis-cli|duckdb|"
    r"(?:ba|da|z|k|a|mk|fi|c|tc|rba|ya)?sh)[-0-9.]*[a-z]?\Z"
)
_RUNS_ANYTHING: Final = frozenset(
    "source . eval exec command builtin trap env sudo doas su runuser pkexec nohup nice ionice timeout gtimeout time "  # noqa: SIM905
    "stdbuf setsid xargs gxargs find gfind fd fdfind parallel watch entr flock script strace ltrace chroot unshare "
    "nsenter systemd-run at batch crontab ssh scp sftp rsync socat nc ncat telnet tar gtar bsdtar cpio zip unzip sed "
    "gsed awk gawk mawk nawk ed ex vi vim nvim emacs nano less more man make gmake cmake ninja meson scons bazel just "
    "task rake thor invoke fab ant gradlew mvnw nox tox npx uvx pipx bunx pnpx corepack volta nvm asdf direnv "
    "ansible ansible-playbook vagrant packer tmux screen busybox toybox curl wget dd xdg-open open git-shell "
    "jest vitest mocha ava karma cypress playwright webpack rollup vite babel ts-jest".split()
)
_RUNNING_SUBCOMMANDS: Final = {
    "bun": {"run", "x", "add", "install", "create"},
    "bundle": {"exec", "install"},
    "cargo": {"run", "install", "script"},
    "composer": {"run", "run-script", "exec", "install", "require"},
    "conda": {"run", "install", "create"},
    "dart": {"run"},
    "deno": {"run", "eval", "task", "install"},
    "docker": {"run", "exec", "build", "cp", "create", "load", "import"},
    "dotnet": {"run", "exec", "script", "tool"},
    "flutter": {"run"},
    "gem": {"install", "exec"},
    "gh": {"api", "alias", "extension", "codespace", "auth", "secret"},
    "git": {"bisect", "submodule", "filter-branch", "difftool", "mergetool", "config", "instaweb", "hook", "daemon"},
    "go": {"run", "generate", "install", "tool", "get"},
    "hatch": {"run", "shell"},
    "kubectl": {"exec", "run", "debug", "apply", "create", "cp", "edit", "attach", "proxy", "port-forward"},
    "mise": {"run", "exec", "x"},
    "mix": {"run", "do", "eval", "cmd"},
    "npm": {"exec", "install", "link", "create", "init", "explore", "config", "set"},
    "pdm": {"run", "install", "add"},
    "pip": {"install", "download", "wheel"},
    "pip3": {"install", "download", "wheel"},
    "pipenv": {"run", "shell", "install"},
    "pnpm": {"exec", "dlx", "install", "add", "create"},
    "podman": {"run", "exec", "build", "cp", "create"},
    "poetry": {"run", "shell", "install", "add"},
    "rails": {"runner", "console", "c", "r", "generate", "g"},
    "rye": {"run"},
    "swift": {"run"},
    "uv": {"run", "tool", "pip", "add", "sync"},
    "yarn": {"exec", "dlx", "add", "install", "node"},
    "brew": {"install", "services", "sh", "ruby"},
    "systemctl": {"edit"},
    "helm": {"plugin"},
    "pre-commit": {"try-repo"},
    "zig": {"run", "build"},
}

# "always" may cover all their arguments: they read, check or format, and their risky options are known.
_SIMPLE: Final = frozenset(
    "[ actionlint arch base64 basename bat black cal cat cksum cloc cmp column comm cut date df diff dirname du echo "  # noqa: SIM905
    "egrep eslint exa expand expr eza factor false fgrep file flake8 fmt fold free gofmt grep groups hadolint head "
    "hexdump hostname id isort jq la ll locale ls lsof markdownlint md5 md5sum mkdir mypy nl nproc od pgrep pidof "
    "prettier printenv printf ps pwd pylint pyright pytest readlink realpath rev rg rubocop rustfmt seq sha1sum "
    "sha256sum sha512sum shasum shellcheck shfmt sleep sort stat stylelint strings sum tac tail test tokei touch tr "
    "tree true tsc tty type uname uniq uptime vmstat wc whereis which who whoami xxd yamllint yes yq zcat".split()
)
# They do not open files that their arguments name.
WITHOUT_FILES: Final = frozenset(
    "echo printf true false : test [ basename dirname seq sleep expr pwd date".split()  # noqa: SIM905
)
# They open files only to read them.
_READS_ONLY: Final = WITHOUT_FILES | frozenset(
    "ack ag bat cat cd cksum cloc cmp comm cut df diff du egrep fgrep file find grep head hexdump jq less ls md5sum "  # noqa: SIM905
    "nl od pushd readlink realpath rg sha1sum sha256sum sha512sum shellcheck sort stat strings tac tail tree uniq wc "
    "xxd yamllint".split()
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
    return program in _TWO or program in _THREE or program in _DEEP


def same_subcommand(program: str, word: str) -> str:
    """The usual name of a subcommand."""
    return _ALIASES.get(program, {}).get(word, word)


def is_known_subcommand(program: str, word: str) -> bool:
    """False for a word that can be an alias of the user's, such as `git p`."""
    return program != "git" or word in _GIT_COMMANDS


def runs_anything(words: Sequence[str]) -> bool:
    """Whether these words can run any program: an interpreter, a wrapper, a task runner, a script."""
    program = program_of(words[0])
    if "/" in words[0] or program in _RUNS_ANYTHING or _INTERPRETER.match(program):
        return True
    running = _RUNNING_SUBCOMMANDS.get(program)
    if running is None:
        return False
    return any(same_subcommand(program, word) in running for word in words[1:])


def covered_words(words: tuple[str, ...]) -> int | None:
    """How many words "always" covers as a prefix: program and subcommands. None: only the exact line."""
    program = program_of(words[0])
    if runs_anything(words):
        return None
    if program in _SIMPLE:
        return 1
    if not has_subcommands(program) or (at := subcommand_at(words)) is None or at >= len(words):
        return None
    if not _is_subcommand(words[at]) or not is_known_subcommand(program, words[at]):
        return None
    count = at + _depth(program, words[at])
    if program in _DEEP:
        count = next((end for end in range(at, len(words)) if not _is_subcommand(words[end])), len(words))
        count = min(count, _MAX_DEEP_WORDS)
    elif count > len(words) or not all(map(_is_subcommand, words[at:count])):
        return None
    return count


def _depth(program: str, subcommand: str) -> int:
    if program in _CONTAINER_TOOLS:
        return 2 if subcommand in _CONTAINER_GROUPS else 1
    if program in _THREE or subcommand in _NAMES_A_SCRIPT:
        return 2
    return 1


def _is_subcommand(word: str) -> bool:
    return re.fullmatch(r"[A-Za-z][A-Za-z0-9:_.-]*", word) is not None


def reads_only(words: Sequence[str]) -> bool:
    """Whether the command opens the files that its arguments name only to read them."""
    program = program_of(words[0])
    if program == "git":
        at = subcommand_at(words)
        return at is not None and at < len(words) and words[at] in _GIT_READS
    return program in _READS_ONLY


def runs_script(words: Sequence[str]) -> bool:
    """Whether the command runs a file that an argument names: `bash x`, `source x`, `python x`."""
    program = program_of(words[0])
    return program in {"source", ".", "exec"} or _INTERPRETER.match(program) is not None
