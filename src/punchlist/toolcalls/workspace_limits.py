"""Limits of an allowed command: its paths stay in the workspace, and it does not write protected files. Pure except
for the links that `PathResolver` reads.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Final

from punchlist.kernel.text import excerpt
from punchlist.toolcalls.paths import PROTECTED_FILES, PROTECTED_FOLDERS, PathResolver, protected_part
from punchlist.toolcalls.shell import SimpleCommand
from punchlist.toolcalls.shell.known_commands import is_known, may_take_option, reads_only
from punchlist.toolcalls.shell.model import WrapperWord
from punchlist.toolcalls.shell.options import option_scope
from punchlist.toolcalls.shell.programs import FREE_TEXT_OPTIONS, PATTERN_FIRST, WITHOUT_FILES, program_of

_URL: Final = re.compile(r"(?<![A-Za-z0-9+.-])(?!(?i:file):)[A-Za-z][A-Za-z0-9+.-]*://\S*")
_SEPARATORS: Final = re.compile(r"[=:,@]")
_STREAMS: Final = re.compile(r"/dev/(?:null|stdin|stdout|stderr|tty|zero|fd/[0-9]+)\Z")
_PATH: Final = re.compile(r"[/~.]")
_MAX_LETTERS: Final = 64
"""The most letters of options in one word that are looked at for a value."""
_MAX_FOLDERS: Final = 8
_PROTECTED: Final = PROTECTED_FOLDERS | PROTECTED_FILES
_PROTECTED_NAME: Final = re.compile(
    rf"(?:\A|[^\w.-])({'|'.join(map(re.escape, sorted(_PROTECTED)))})(?![\w.-])", re.IGNORECASE
)
_CHANGES_REMOTE: Final = frozenset(("add", "rename", "set-url"))
"""A push to a folder runs the hooks in it."""
_LEAVES_OUT: Final = re.compile(r"--(?:exclude|ignore)(?:-dir|-glob|-pattern|-vcs)?=")


class Folders:
    """The folders in which the commands of a line can run: `cd` adds one, and an unknown one makes all uncertain."""

    def __init__(self, paths: PathResolver) -> None:
        self._paths = paths
        self.certain = True
        self.known: list[str] = [paths.root]
        self._resolved: dict[str, list[str]] = {}

    @property
    def are_only_root(self) -> bool:
        return self.certain and len(self.known) == 1

    def after(self, command: SimpleCommand) -> None:
        """Take the effect of a command into account."""
        if not command.words or command.words[0] not in {"cd", "pushd", "popd", "chdir"}:
            return
        arguments = [word for word in command.words[1:] if not word.startswith("-")]
        if not command.complete or len(arguments) != 1 or "-" in command.words[1:] or command.words[0] == "popd":
            self.certain = False
            return
        more = [self._paths.resolve(arguments[0], folder) for folder in self.known]
        self.known = list(dict.fromkeys([*self.known, *more]))
        self._resolved.clear()
        if len(self.known) > _MAX_FOLDERS:
            self.certain = False

    def resolve(self, path: str) -> list[str]:
        """What a path can name, one for each folder."""
        if path not in self._resolved:
            anywhere = path.startswith("/") and "/cwd" not in path
            known = [self._paths.root] if anywhere else self.known
            self._resolved[path] = [self._paths.resolve(path, folder) for folder in known]
        return self._resolved[path]


def limit_exceeded(command: SimpleCommand, covered: int, paths: PathResolver, folders: Folders) -> str | None:
    """Why a person is asked about a command that a rule allows; None if it stays within the limits.

    `covered` is the number of words that the rule names: those are what the person allowed.
    """
    if outside := _outside(command, covered, paths, folders):
        return outside
    if repository := _other_repository(command.words, paths, folders):
        return f"{excerpt(repository, 60)} is a repository of its own, whose settings can run programs"
    return protected_write(command, covered, folders)


def _outside(command: SimpleCommand, covered: int, paths: PathResolver, folders: Folders) -> str | None:
    for path in command.reads:
        if path == "?" or not _all_inside(path, paths, folders):
            return f"it reads {excerpt(path, 60)}, which may be outside the workspace"
    program = program_of(command.words[0])
    if program in WITHOUT_FILES:
        return None
    for piece in _paths_in(command.words, covered):
        if not _all_inside(piece, paths, folders):
            return f"{excerpt(piece, 60)} is outside the workspace"
    for word in command.rest:
        if not _stays_inside(word, command.words, paths, folders):
            return f"{excerpt(word.raw, 60)} is not known before it runs"
    return None


def _other_repository(words: Sequence[str], paths: PathResolver, folders: Folders) -> str | None:
    """The folder below the root that git would take for a repository: a cloned one can contain it as plain files."""
    if (folders.are_only_root and "-C" not in words) or program_of(words[0]) != "git":
        return None
    named = [real for at, word in enumerate(words) if words[at - 1] == "-C" for real in folders.resolve(word)]
    above = (f"{paths.root}/{part}" for real in [*folders.known[1:], *named] for part in _above(paths.relative(real)))
    found = (folder for folder in above if os.path.isfile(f"{folder}/HEAD") and os.path.isdir(f"{folder}/refs"))
    return next(map(paths.relative, found), None)


def _above(relative: str) -> Iterator[str]:
    """A folder and those that contain it, up to the root of the workspace."""
    parts = [] if relative.startswith("/") else relative.split("/")
    for count in range(len(parts), 0, -1):
        yield "/".join(parts[:count])


def _all_inside(path: str, paths: PathResolver, folders: Folders) -> bool:
    if _STREAMS.match(path):
        return True
    if path.startswith("~") or (not folders.certain and not path.startswith("/") and ("/" in path or path == "..")):
        return False
    return all(map(paths.is_inside, folders.resolve(path)))


def _paths_in(words: Sequence[str], covered: int) -> Iterator[str]:
    """The parts of the arguments that can be paths."""
    pattern = program_of(words[0]) in PATTERN_FIRST or words[1:2] == ("grep",)
    skip = pattern and not {"-e", "-f", "--regexp", "--file"}.intersection(words)
    for at, word in enumerate(words):
        if at < max(covered, 1):
            continue
        if words[at - 1] in FREE_TEXT_OPTIONS or (pattern and words[at - 1] in {"-e", "--regexp"}):
            continue
        if skip and not word.startswith("-"):
            skip = words[0] == "git" and word == "grep"
            continue
        yield from path_pieces(word)


def path_pieces(word: str) -> Iterator[str]:
    """The parts of an argument that can be paths. A plain name can be a link, or a protected one."""
    text = _URL.sub("", word) if "://" in word else word
    pieces = {text, *_SEPARATORS.split(text)} if _SEPARATORS.search(text) else (text,)
    for piece in pieces:
        if piece.startswith("-"):
            yield from _attached(piece)
        elif piece:
            yield piece


def _attached(option: str) -> Iterator[str]:
    """The values that can be attached to letters: `-C.git` has `.git`, and so can `-rC.git`."""
    if option.startswith("--"):
        return
    for at in range(2, min(len(option), _MAX_LETTERS)):
        yield option[at:]
    if (path := _PATH.search(option, _MAX_LETTERS)) is not None:
        yield option[path.start() :]


def _stays_inside(word: WrapperWord, words: tuple[str, ...], paths: PathResolver, folders: Folders) -> bool:
    """Whether an unknown argument is a pattern for names in the workspace. A variable can be anything."""
    if re.search(r"[$`~]|\{", word.raw) or word.raw.startswith(("<", ">")):
        return False
    folder, _, name = word.text.rpartition("/")
    if not name and not folder and may_take_option(words):
        # `*` matches a file named `--output=x`.
        return False
    if name.startswith("-") and not folder:
        return False
    return ".." not in word.raw.split("/") and (not folder or _all_inside(folder, paths, folders))


def protected_write(command: SimpleCommand, covered: int, folders: Folders) -> str | None:
    """Why a command may write a file that defines what agents do; None if it does not."""
    if "?" in command.writes:
        return "it writes a file that is not known before it runs"
    written = list(command.writes)
    arguments: list[str] = []
    if command.words and not reads_only(command.words):
        if _changes_git_settings(command.words):
            return "it changes the settings of git, which define what its commands run"
        arguments = [word for word in command.words[max(covered, 1) :] if not _LEAVES_OUT.match(word)]
        written += [piece for word in arguments for piece in path_pieces(word)]
    if (arguments or command.values or command.rest) and (named := _protected_name(command, arguments)):
        return f"{excerpt(named, 60)} may be a file that defines what agents and tools do"
    for path in written:
        if connects(path):
            return f"{excerpt(path, 60)} is a network connection"
        for real in folders.resolve(path):
            if part := protected_part(real):
                return f"{part} defines what agents and tools do"
    return None


def _protected_name(command: SimpleCommand, arguments: Sequence[str]) -> str | None:
    """A protected name anywhere in the arguments, or in the values of variables that later ones can use."""
    for text in (*arguments, *command.values):
        if found := _PROTECTED_NAME.search(text):
            return found[1]
    unknown = command.rest if not command.words or not reads_only(command.words) else ()
    return next((word.raw for word in unknown if _may_be_protected(word)), None)


def _changes_git_settings(words: tuple[str, ...]) -> bool:
    if program_of(words[0]) != "git":
        return False
    scope = option_scope(words)
    if scope == "git remote":
        return not _CHANGES_REMOTE.isdisjoint(words)
    return scope == "git config" and not is_known(words)


def connects(path: str) -> bool:
    return re.match(r"/+dev/+(?:tcp|udp)/", path) is not None


def _may_be_protected(word: WrapperWord) -> bool:
    """Whether an unknown argument such as `.g*` or `"$HOME/.git/x"` can have a protected name."""
    raw = word.raw.casefold()
    if any(name in raw for name in _PROTECTED):
        return True
    ends = (piece.rpartition("/")[2].casefold() for piece in path_pieces(word.text))
    return any(name.startswith(".") and any(one.startswith(name) for one in _PROTECTED) for name in ends)
