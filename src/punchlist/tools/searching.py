"""A program: what to look for comes as JSON on standard input, what was found goes to standard output."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

LARGEST_FILE = 5_000_000
LONGEST_LINE = 300


def main() -> None:
    asked = json.load(sys.stdin)
    try:
        lines = search(asked) if "search" in asked else find(asked)
        for number, line in enumerate(lines):
            if number >= asked["most"]:
                print(f"… and more than these {asked['most']}; narrow it down")
                break
            print(line)
    except re.error as error:
        sys.exit(f"pattern: is no regular expression ({error})")


def files(start: str) -> Iterator[str]:
    """Below a folder in their order, without hidden folders, and without following links out of it."""
    if not os.path.isdir(start):
        yield start
        return
    for folder, inside, names in os.walk(start):
        inside[:] = sorted(name for name in inside if not name.startswith(".") and name != "node_modules")
        for name in sorted(names):
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield path


def find(asked: dict[str, Any]) -> Iterator[str]:
    pattern = re.compile(as_expression(asked["find"]))
    for path in files(asked["root"]):
        shown = os.path.relpath(path, asked["root"])
        if pattern.fullmatch(shown if "/" in asked["find"] else os.path.basename(path)):
            yield shown


def as_expression(pattern: str) -> str:
    """A file pattern as a regular expression: ** is any number of folders, * stays within one."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern.removeprefix("./"))
    told = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(told.get(part) or re.escape(part) for part in parts)


def search(asked: dict[str, Any]) -> Iterator[str]:
    pattern = re.compile(asked["search"])
    for path in files(asked["path"]):
        try:
            if os.path.getsize(path) > LARGEST_FILE:
                continue
            with open(path, "rb") as file:
                content = file.read()
        except OSError:
            continue
        if b"\x00" in content[:8_192]:
            continue
        for number, line in enumerate(content.decode(errors="replace").splitlines(), start=1):
            if pattern.search(line):
                yield f"{path}:{number}:{line[:LONGEST_LINE]}"


if __name__ == "__main__":
    main()
