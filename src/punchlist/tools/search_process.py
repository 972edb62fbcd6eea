"""A program that searches the current folder: it reads a query as JSON on standard input and prints matches.

It does not follow symbolic links, not even links that appear while it runs.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

MAX_LINE_LENGTH = 300
MAX_PIECE_BYTES = 1_000_000
"""Longer lines are searched in pieces."""
MAX_DEPTH = 200
FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def main() -> None:
    query = json.load(sys.stdin)
    # File names are bytes: names that are not valid text are printed unchanged.
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")  # type: ignore[union-attr]
    try:
        lines = search(query) if "search" in query else find(query)
        for number, line in enumerate(lines):
            if number >= query["limit"]:
                print(f"… more than {query['limit']} matches; narrow the search")
                break
            print(line)
    except (re.error, OverflowError, RecursionError) as error:
        sys.exit(f"pattern: not a regular expression ({error})")
    except OSError as error:
        sys.exit(str(error))


def open_folder(path: str) -> int:
    folder = os.open("/" if path.startswith("/") else ".", FOLDER)
    for name in path.split("/"):
        if name not in ("", "."):
            folder = os.open(name, FOLDER, dir_fd=folder)
    return folder


def files(path: str, folder: int, depth: int = 0) -> Iterator[tuple[str, str, int]]:
    """All files below a folder, sorted: path, name, and descriptor of the parent. Hidden folders are skipped."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        below = os.path.normpath(os.path.join(path, entry.name))
        if entry.is_file(follow_symlinks=False):
            yield below, entry.name, folder
        elif entry.is_dir(follow_symlinks=False) and not is_skipped(entry.name) and depth < MAX_DEPTH:
            try:
                inside = os.open(entry.name, FOLDER, dir_fd=folder)
            except OSError:
                continue
            try:
                yield from files(below, inside, depth + 1)
            finally:
                os.close(inside)


def is_skipped(name: str) -> bool:
    return name.startswith(".") or name == "node_modules"


def find(query: dict[str, Any]) -> Iterator[str]:
    pattern = re.compile(glob_to_regex(query["find"]), re.DOTALL)
    for path, name, _ in files(".", open_folder(".")):
        if pattern.fullmatch(path if "/" in query["find"] else name):
            yield path


def glob_to_regex(pattern: str) -> str:
    """Translate a file pattern: ** matches any number of folders, * stays within one."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern.removeprefix("./"))
    translated = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(translated.get(part) or re.escape(part) for part in parts)


def search(query: dict[str, Any]) -> Iterator[str]:
    pattern = re.compile(query["search"])
    target = query["path"]
    parent, name = os.path.split(target)
    found = files(target, open_folder(target)) if os.path.isdir(target) else [(target, name, open_folder(parent))]
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
    while piece := file.readline(MAX_PIECE_BYTES):
        line = piece.decode(errors="replace").removesuffix("\n").removesuffix("\r")
        if pattern.search(line):
            yield f"{path}:{number}:{line[:MAX_LINE_LENGTH]}"
        number += piece.endswith(b"\n")


if __name__ == "__main__":
    main()
