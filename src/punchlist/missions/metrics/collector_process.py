"""Runs collector code in a process that can be killed. Executed as a script, so it uses only the standard library.

    python collector_process.py call MODULE:FUNCTION   a Python collector; or the name of an entry point
    python collector_process.py match                  pattern and text as JSON on stdin; some patterns never finish

The result is JSON on stdout: {"value": …} or {"error": "…"}.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from typing import Any, Final

GROUP: Final = "punchlist.collectors"


def main(arguments: list[str]) -> None:
    # Redirect what the collector prints to stderr, so that it cannot mix with the result.
    result = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    answer = _call(arguments[1]) if arguments[0] == "call" else _match(json.load(sys.stdin))
    with result:
        json.dump(answer, result)


def _call(name: str) -> dict[str, Any]:
    try:
        value = _function(name)()
    except SystemExit as left:
        return {"error": f"it exited ({left.code})"}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    if isinstance(value, bool) or not isinstance(value, int | float):
        # Accept numeric types of other libraries.
        if isinstance(value, bool | str | bytes) or not hasattr(value, "__float__"):
            return {"error": f"it returned {_excerpt(repr(value))}, which is not a number"}
        value = float(value)
    # As text: JSON cannot represent NaN.
    return {"value": repr(value)}


def _function(name: str) -> Callable[[], Any]:
    from importlib import import_module
    from importlib.metadata import entry_points

    if ":" not in name:
        found = next(iter(entry_points(group=GROUP, name=name)), None)
        if found is None:
            raise LookupError(f"no installed package has an entry point {name!r} in the group {GROUP!r}")
        return _callable(found.load(), name)
    module, _, path = name.partition(":")
    inner: Any = import_module(module)
    for attribute in path.split("."):
        inner = getattr(inner, attribute)
    return _callable(inner, name)


def _callable(found: Any, name: str) -> Callable[[], Any]:
    if not callable(found):
        raise TypeError(f"{name} is not a function")
    function: Callable[[], Any] = found
    return function


def _match(asked: dict[str, str]) -> dict[str, Any]:
    try:
        found = re.search(asked["pattern"], asked["text"], re.MULTILINE)
    except (re.error, RecursionError, OverflowError) as error:
        return {"error": f"the pattern cannot be used: {error}"}
    if found is None:
        return {"error": f"the pattern was not found in {_excerpt(asked['text'].strip())!r}"}
    value = found[1] if found.re.groups else found[0]
    return {"value": value} if value is not None else {"error": "the pattern's group matched nothing"}


def _excerpt(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"


if __name__ == "__main__":
    main(sys.argv[1:])
