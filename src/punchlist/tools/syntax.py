"""Whether a file that was just written can be parsed. A model that broke it is told at once, not by a later failure."""

from __future__ import annotations

import ast
import json
import sys
import tomllib
import warnings
from pathlib import PurePath
from typing import Final

from punchlist.kernel.text import excerpt

MAX_LENGTH: Final = 200_000


def syntax_note(path: str, text: str) -> str:
    """A sentence for the result of a tool; empty if the text can be parsed, or is of no known kind."""
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
    return f" But it cannot be parsed now: {excerpt(problem, 300)}." if problem else ""


def _python(text: str) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
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
