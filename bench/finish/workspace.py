"""What hidden tests use to look at a workspace."""

from __future__ import annotations

import csv
import importlib.util
import json
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml


class TaskWorkspace:
    def __init__(self, root: Path) -> None:
        self.root = root

    def exists(self, path: str) -> bool:
        return (self.root / path).exists()

    def text(self, path: str) -> str:
        return (self.root / path).read_text()

    def json(self, path: str) -> Any:
        return json.loads(self.text(path))

    def jsonl(self, path: str) -> list[Any]:
        return [json.loads(line) for line in self.text(path).splitlines() if line.strip()]

    def yaml(self, path: str) -> Any:
        return yaml.safe_load(self.text(path))

    def csv(self, path: str) -> list[dict[str, str]]:
        return list(csv.DictReader(self.text(path).splitlines()))

    def module(self, path: str) -> ModuleType:
        """The module, loaded anew, as if its folder were on the import path."""
        file = self.root / path
        before, bytecode = set(sys.modules), sys.dont_write_bytecode
        sys.path.insert(0, str(file.parent))
        sys.dont_write_bytecode = True
        try:
            spec = importlib.util.spec_from_file_location(f"task_{file.stem}", file)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
        finally:
            sys.dont_write_bytecode = bytecode
            sys.path.remove(str(file.parent))
            for name in set(sys.modules) - before:
                if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(self.root)):
                    del sys.modules[name]

    def run(self, *command: str) -> str:
        """The output of a program; raises if it fails."""
        return subprocess.run(command, cwd=self.root, check=True, capture_output=True, text=True, timeout=30).stdout

    def sql(self, path: str, query: str) -> list[tuple[Any, ...]]:
        return self.sql_text(self.text(path), query)

    def sql_text(self, script: str, query: str, values: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(":memory:")) as database:
            database.executescript(script)
            return database.execute(query, values or {}).fetchall()

    def sql_columns(self, path: str, table: str) -> set[str]:
        return {row[1] for row in self.sql(path, f"PRAGMA table_info({table})")}
