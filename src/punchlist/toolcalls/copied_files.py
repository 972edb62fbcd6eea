"""What a command writes beside the files that it names: the files of a copied folder, names with a suffix."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Sequence
from typing import Final

from punchlist.toolcalls.folders import Folders
from punchlist.toolcalls.paths import PROTECTED_FILES, PROTECTED_FOLDERS
from punchlist.toolcalls.shell.programs import program_of

MAX_ENTRIES: Final = 5_000
_PROTECTED: Final = PROTECTED_FOLDERS | PROTECTED_FILES
_COPIES_FOLDERS: Final = {
    **dict.fromkeys(("cp", "gcp", "scp"), re.compile(r"-[a-zA-Z]*[rRa]|--(?:rec|arc)")),
    "rsync": re.compile(r"-[a-zA-Z]*[ra]|--(?:rec|arc)"),
    "ditto": re.compile(""),
}
_TARGET: Final = re.compile(r"-[a-zA-Z]*t|--target")
_SUFFIX: Final = re.compile(r"(?:-[a-zA-Z0]*?i|-[a-zA-Z]*S|--suffix=|--in-place=)(.+)", re.DOTALL)
_ADDS_SUFFIX: Final = frozenset(("cp", "gsed", "install", "ln", "mv", "perl", "ruby", "sed"))
_DECOMPRESSES: Final = re.compile(
    r"(?:bunzip2|gunzip|unxz|unlzma|uncompress|unzstd|unlz4|bzip2|gzip|pigz|xz|lzma|zstd|lz4|compress|brotli|unpigz)\Z"
)


def derived_names(words: Sequence[str]) -> Iterator[str]:
    """The files that a command writes beside those that are named: `x` of `gunzip x.gz`, `x.bak` of `sed -i.bak`."""
    program = program_of(words[0])
    if _DECOMPRESSES.match(program):
        yield from (word.rpartition(".")[0] for word in words[1:] if "." in word)
        return
    operands = [word for word in words[1:] if not word.startswith("-")]
    if program == "ln" and operands:
        # A link is relative to the folder that it is in.
        folder, *_ = operands[-1].rpartition("/")
        yield from (
            f"{place}/{word}" for place in (folder or ".", operands[-1]) for word in operands if word[:1] != "/"
        )
    if program in _ADDS_SUFFIX:
        suffixes = [found[1] for word in words[1:] if (found := _SUFFIX.match(word))]
        suffixes += [word for option, word in itertools.pairwise(words) if option in {"-S", "--suffix"}]
        for suffix in suffixes:
            for word in words[1:]:
                yield suffix.replace("*", word.rpartition("/")[2]) if "*" in suffix else word + suffix


def copied_name(words: Sequence[str], folders: Folders) -> str | None:
    """A protected name in a folder that is copied as a whole, or the folder if it is too large to look at."""
    copies = _COPIES_FOLDERS.get(program_of(words[0]))
    if copies is None or not any(map(copies.match, words[1:])):
        return None
    operands = [word for word in words[1:] if not word.startswith("-")]
    left_out = {word.partition("=")[2].strip("/") for word in words if word.startswith("--exclude=")}
    entries = MAX_ENTRIES
    for operand in operands if any(map(_TARGET.match, words[1:])) else operands[:-1]:
        for folder in folders.resolve(operand):
            found, entries = _find(folder, left_out, entries)
            if found:
                return found if entries else operand
    return None


def _find(folder: str, left_out: set[str], entries: int) -> tuple[str | None, int]:
    waiting = [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as found:
                for entry in found:
                    if entry.name in left_out:
                        continue
                    if entry.name.casefold() in _PROTECTED:
                        return entry.name, entries
                    entries -= 1
                    if not entries:
                        return entry.name, 0
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError:
            continue
    return None, entries
