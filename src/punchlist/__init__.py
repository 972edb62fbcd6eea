"""Punchlist: the todo list that AI agents finish.

`__init__.pyi` lists the public names and their modules. A name is imported on first use, so that
`import punchlist` is fast.
"""

from __future__ import annotations

from functools import cache
from typing import Any

__version__ = "0.1.0"


@cache
def _modules() -> dict[str, str]:
    """The module of each public name, read from the stub file."""
    import ast
    from pathlib import Path

    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return [*_modules(), "__version__"]
    if name.startswith("_") or name not in _modules():
        raise AttributeError(f"module 'punchlist' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_modules()[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *_modules()]
