"""A program: what to look for comes as JSON on standard input, what was found goes to standard output.

It runs in the workspace's folder. Links are not followed, not even those that appear while it looks.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

LONGEST_LINE = 300
LONGEST_PIECE = 1_000_000
"""Bytes of a line that are looked at together."""
DEEPEST = 200
FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def main() -> None:
    asked = json.load(sys.stdin)
    # Names of files are bytes: those that are no text are told as they are.
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")  # type: ignore[union-attr]
    try:
        lines = search(asked) if "search" in asked else find(asked)
        for number, line in enumerate(lines):
            if number >= asked["most"]:
                print(f"… and more than these {asked['most']}; narrow it down")
                break
            print(line)
    except (re.error, OverflowError, RecursionError) as error:
        sys.exit(f"pattern: is no regular expression ({error})")
    except OSError as error:
        sys.exit(str(error))


def step_into(path: str) -> int:
    folder = os.open("/" if path.startswith("/") else ".", FOLDER)
    for name in path.split("/"):
        if name not in ("", "."):
            folder = os.open(name, FOLDER, dir_fd=folder)
    return folder


def files(path: str, folder: int, deep: int = 0) -> Iterator[tuple[str, str, int]]:
    """All below a folder in their order: path, name, and the folder that the name is in; but no hidden folders."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        below = os.path.normpath(os.path.join(path, entry.name))
        if entry.is_file(follow_symlinks=False):
            yield below, entry.name, folder
        elif entry.is_dir(follow_symlinks=False) and not left_out(entry.name) and deep < DEEPEST:
            try:
                inside = os.open(entry.name, FOLDER, dir_fd=folder)
            except OSError:
                continue
            try:
                yield from files(below, inside, deep + 1)
            finally:
                os.close(inside)


def left_out(name: str) -> bool:
    return name.startswith(".") or name == "node_modules"


def find(asked: dict[str, Any]) -> Iterator[str]:
    pattern = re.compile(as_expression(asked["find"]), re.DOTALL)
    for path, name, _ in files(".", step_into(".")):
        if pattern.fullmatch(path if "/" in asked["find"] else name):
            yield path


def as_expression(pattern: str) -> str:
    """A file pattern as a regular expression: ** is any number of folders, * stays within one."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern.removeprefix("./"))
    told = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(told.get(part) or re.escape(part) for part in parts)


def search(asked: dict[str, Any]) -> Iterator[str]:
    pattern = re.compile(asked["search"])
    place = asked["path"]
    above, last = os.path.split(place)
    found = files(place, step_into(place)) if os.path.isdir(place) else [(place, last, step_into(above))]
    for path, name, folder in found:
        try:
            with open(os.open(name, FILE, dir_fd=folder), "rb") as file:
                yield from lines(file, path, pattern)
        except OSError:
            continue


def lines(file: BinaryIO, path: str, pattern: re.Pattern[str]) -> Iterator[str]:
    if b"\x00" in file.read(8_192):
        return
    file.seek(0)
    number = 1
    while piece := file.readline(LONGEST_PIECE):
        line = piece.decode(errors="replace").removesuffix("\n").removesuffix("\r")
        if pattern.search(line):
            yield f"{path}:{number}:{line[:LONGEST_LINE]}"
        number += piece.endswith(b"\n")


if __name__ == "__main__":
    main()
