"""Optional dependencies: a missing one is named together with the command that installs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from punchlist.errors import MissingExtra
from punchlist.extras import require


def test_an_installed_dependency_is_imported() -> None:
    assert require("json", extra="agent", feature="JSON support") is json


def test_a_missing_dependency_says_how_to_install_it() -> None:
    with pytest.raises(MissingExtra) as raised:
        require("no_such_package.module", extra="postgres", feature="PostgreSQL support")
    assert str(raised.value) == (
        "PostgreSQL support is not installed. Install it with: pip install 'punchlist[postgres]'"
    )
    assert raised.value.exit_code == 2


def test_an_import_error_inside_of_a_dependency_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "half_installed.py").write_text("import no_such_package\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        require("half_installed", extra="agent", feature="The agent")
