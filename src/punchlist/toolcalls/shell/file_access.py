"""What is known about how programs use files: which write the files they are given, which take the names of the files
they write from a file's content, and which options follow links.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from punchlist.toolcalls.shell.options import option_scope
from punchlist.toolcalls.shell.programs import program_of

_WRITES: Final = frozenset(
    "bunzip2 bzip2 cp csplit dd ditto ed emacs ex ginstall gunzip gzip install link ln mv nano nvim rm rsync scp shred "  # noqa: SIM905
    "split sponge tee touch trash truncate unlink unxz unzstd vi vim xz zstd".split()
)
_WRITES_IN_PLACE: Final = {
    **dict.fromkeys(("sed", "gsed"), re.compile(r"-[nErsuz]*i|--i")),
    **dict.fromkeys(("perl", "ruby"), re.compile(r"-[a-zA-Z0]*i")),
    "gawk": re.compile(r"(?:-i|--include)"),
    "yq": re.compile(r"-i|--inplace"),
}
_NAMES_OUTPUT: Final = re.compile(r"(?:-o|--output(?:-document|-file)?)(?:=|\Z)")
_ALWAYS_FROM_CONTENT: Final = frozenset(
    "7z 7za 7zr 7zz ar arj bsdcpio cabextract cpio gpatch lha patch pax uncpio unar unarj uncab unrar unsquashfs "  # noqa: SIM905
    "unzip unzoo zoo".split()
)
_TARS: Final = frozenset(("bsdtar", "gtar", "star", "tar"))
_TAR_EXTRACTS: Final = re.compile(r"--(?:ext|get)")
_LISTS: Final = {
    "unzip": re.compile(r"-[lvtzZhp]+\Z"),
    "cpio": re.compile(r"(?:-[itv]*t[itv]*|-o[vac]*|--list|--create)\Z"),
    "patch": re.compile(r"--dry-run\Z"),
    "ar": re.compile(r"-?[tpdqrms]"),
    "unsquashfs": re.compile(r"-(?:l|ll|s|stat)\Z"),
    "unrar": re.compile(r"[lvt]"),
    **dict.fromkeys(("7z", "7za", "7zr", "7zz"), re.compile(r"[lthai]\Z")),
}
_GIT_LISTS: Final = frozenset(
    ("--stat", "--numstat", "--summary", "--check", "--abort", "--quit", "--show-current-patch")
)


def writes_arguments(words: Sequence[str]) -> bool:
    """Whether a command writes, moves or removes the files that its arguments name, whatever they are."""
    program = program_of(words[0])
    if program in _WRITES:
        return True
    in_place = _WRITES_IN_PLACE.get(program)
    return in_place is not None and any(map(in_place.match, words[1:]))


def names_output(word: str) -> bool:
    """Whether an option names a file to write: `-o`."""
    return _NAMES_OUTPUT.match(word) is not None


def writes_from_content(words: Sequence[str]) -> bool:
    """Whether a file's content says which files a command writes: a patch, an archive."""
    program = program_of(words[0])
    arguments = words[1:]
    if program == "git":
        scope = option_scope(words)
        if scope == "git apply" and "--apply" in arguments:
            return True
        return scope in {"git apply", "git am", "git quiltimport"} and _GIT_LISTS.isdisjoint(arguments)
    if program in _TARS:
        return _extracts(arguments)
    if program not in _ALWAYS_FROM_CONTENT:
        return _from_server(program, arguments)
    lists = _LISTS.get(program)
    first = [word for word in arguments if word.startswith("-")] if program in {"patch", "cpio"} else arguments[:1]
    return not (lists is not None and any(map(lists.match, first)))


def _extracts(arguments: Sequence[str]) -> bool:
    letters = "".join(word for word in arguments if word.startswith("-") and not word.startswith("--"))
    if arguments and not arguments[0].startswith("-"):
        letters += arguments[0]
    return "x" in letters or any(map(_TAR_EXTRACTS.match, arguments))


_SERVER_NAMES: Final = {
    "curl": re.compile(r"-[#0-9afgiIjkLlNnOpqRsSv]*J|--remote-header"),
    "wget": re.compile(r"-[qncvNSkpEKb]*[rmi]|--(?:content-d|trust-server|recursive|mirror|input-file)"),
    **dict.fromkeys(("gunzip", "gzip", "pigz", "unpigz"), re.compile(r"-[a-zA-Z]*N|--name")),
    "aria2c": re.compile(""),
}


def _from_server(program: str, arguments: Sequence[str]) -> bool:
    names = _SERVER_NAMES.get(program)
    return names is not None and any(map(names.match, arguments))


# --- links --------------------------------------------------------------------------------------------------

# Letters, and long names, whose beginnings count as well.
_NO_NAMES: Final[tuple[str, tuple[str, ...]]] = ("", ())
_DEREFERENCE: Final = ("L", ("dereference",))
_GREP: Final = ("R", ("dereference-recursive",))
_FIND: Final = ("L", ("follow",))
_FOLLOWS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    **dict.fromkeys(("egrep", "fgrep", "grep", "rgrep", "zgrep"), _GREP),
    **dict.fromkeys(("fd", "fdfind", "find", "gfind", "rg"), _FIND),
    **dict.fromkeys(("chgrp", "chmod", "chown", "cp", "du", "ls"), _DEREFERENCE),
    **dict.fromkeys(("bsdtar", "gtar", "tar"), ("h", ("dereference",))),
    "ack": ("", ("follow",)),
    "ag": ("f", ("follow",)),
    "cloc": ("", ("follow-links",)),
    "rsync": ("LkK", ("copy-links", "copy-unsafe-links", "copy-dirlinks", "keep-dirlinks")),
    "tree": ("l", ()),
}
# A letter after which the rest of the word is a value.
_VALUED: Final = {
    "grep": "efmABCdD",
    "egrep": "efmABCdD",
    "fgrep": "efmABCdD",
    "rgrep": "efmABCdD",
    "rg": "efgtTmABCMjrE",
    "fd": "etxXEScjd",
    "tree": "LPIo",
    "ls": "ITw",
    "du": "dtX",
    "cp": "tS",
    "rsync": "efMBT",
    "tar": "fCTXIbHVgKLNF",
}

# They follow links in folders unless an option forbids it.
_FOLLOW_UNLESS: Final = {"diff": "--no-dereference", "zip": "-y"}
_INTO_FOLDERS: Final = re.compile(r"-[a-zA-Z0-9]*r|--recurs")


@lru_cache(maxsize=64)
def follows_links(words: tuple[str, ...], covered: int) -> str | None:
    """The option after the `covered` words that makes a command follow the links in folders; None if there is none."""
    program = program_of(words[0])
    if program in _FOLLOW_UNLESS and _goes_into_folders(program, words[1:]):
        return "-r"
    letters, names = _FOLLOWS.get(program, _NO_NAMES)
    if program in _TARS and words[1:] and "h" in words[1] and not words[1].startswith("-"):
        return words[1]
    for word in words[covered:] if letters or names else ():
        if word == "--":
            return None
        if word.startswith("--") or (program in {"find", "gfind"} and len(word) > 2):
            name = word.lstrip("-").partition("=")[0]
            if word.startswith("-") and len(name) > 2 and any(full.startswith(name) for full in names):
                return word
        elif word.startswith("-") and _has_letter(word[1:], letters, _VALUED.get(program, "")):
            return word
    return None


def _has_letter(cluster: str, letters: str, valued: str) -> bool:
    for letter in cluster:
        if letter in letters:
            return True
        if letter in valued:
            return False
    return False


def _goes_into_folders(program: str, arguments: Sequence[str]) -> bool:
    return _FOLLOW_UNLESS[program] not in arguments and any(map(_INTO_FOLDERS.match, arguments))
