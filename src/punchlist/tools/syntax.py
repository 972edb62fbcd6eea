"""Whether the text of a Python, JSON or TOML file can be parsed: a change that breaks such a file is refused.

A broken file is the end of the work of a small model: it repairs the damage with more damage.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
import warnings
from pathlib import PurePath
from typing import Final

from punchlist.kernel.text import excerpt

MAX_LENGTH: Final = 200_000
_NEWER: Final = re.compile(
    r"""^\s*type\s+\w+\s*[=\[]|\b(?:def|class)\s+\w+\s*\[|\b[rR]?[fFtT][rR]?(["']).*\{[^}]*\1|\b[tT]["']"""
    r"""|^\s*except\*?\s+[\w.]+\s*,|^\s*lazy\s"""
)
"""Syntax of Pythons since 3.12: a project may use a newer one than this program."""


def syntax_problem(path: str, text: str) -> str:
    """Why the text cannot be parsed; empty if it can, or is of no known kind."""
    if len(text) > MAX_LENGTH:
        return ""
    try:
        match PurePath(path).suffix:
            case ".py":
                problem = _python(text)
            case ".toml":
                problem = _toml(text)
            case ".json" if "//" not in text:  # Some programs allow comments.
                problem = _json(text)
            case _:
                return ""
    except (RecursionError, MemoryError, ValueError):
        return ""
    return excerpt(problem, 300)


def repeated_names(path: str, before: str, after: str) -> list[str]:
    """Functions and classes of a Python file that a change defines once more: a part of the old text was left over."""
    if PurePath(path).suffix != ".py" or max(len(before), len(after)) > MAX_LENGTH:
        return []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            known, found = _definitions(before), _definitions(after)
    except (SyntaxError, RecursionError, MemoryError, ValueError):
        return []
    return [name for name in dict.fromkeys(known) if found.count(name) > known.count(name)]


def lost_names(path: str, before: str, after: str) -> list[str]:
    """Functions and classes of a Python file, or keys of a JSON file, that are gone: models forget them when they write
    a file anew. Empty for other files."""
    if max(len(before), len(after)) > MAX_LENGTH:
        return []
    names = {".py": _definitions, ".json": _keys}.get(PurePath(path).suffix)
    if names is None:
        return []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            left = set(names(after))
            return [name for name in names(before) if name not in left]
    except (SyntaxError, RecursionError, MemoryError, ValueError):
        return []


def _definitions(text: str) -> list[str]:
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    # A decorator, such as `overload`, can have a reason to repeat a name.
    return [node.name for node in ast.parse(text).body if isinstance(node, kinds) and not node.decorator_list]


def _keys(text: str) -> list[str]:
    content = json.loads(text)
    return list(content) if isinstance(content, dict) else []


def _python(text: str) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        lines = text.splitlines()
        if error.lineno and error.lineno <= len(lines) and _NEWER.search(lines[error.lineno - 1]):
            return ""
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        return f"line {error.lineno}: {error.msg} (Python {version})"
    return ""


def _toml(text: str) -> str:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return str(error)
    return ""


def _json(text: str) -> str:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f"line {error.lineno}: {error.msg}"
    return ""
