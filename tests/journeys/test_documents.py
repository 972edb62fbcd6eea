"""What the documents say is true: their code runs, their commands work, their links lead somewhere."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from docs.generate import PAGES
from tests.conftest import ROOT, Cli

DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("adr/*.md")])
NAMES = [str(path.relative_to(ROOT)) for path in DOCUMENTS]


def _blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL)


PYTHON = [
    pytest.param(code, id=f"{name}-{number}")
    for name, path in zip(NAMES, DOCUMENTS, strict=True)
    for number, code in enumerate(_blocks(path, "python"), start=1)
]
CONSOLE = [
    pytest.param(text, id=f"{name}-{number}")
    for name, path in zip(NAMES, DOCUMENTS, strict=True)
    for number, text in enumerate(_blocks(path, "console"), start=1)
]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_made_from_code_is_what_the_code_makes(page: str) -> None:
    assert (ROOT / "docs" / page).read_text() == PAGES[page](), "run `make docs`"


@pytest.mark.parametrize("code", PYTHON)
def test_python_in_the_documents_runs(code: str, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("text", CONSOLE)
def test_commands_in_the_documents_work(text: str, punchlist: Cli) -> None:
    punchlist("todos", "add", "Something to look after")
    for line in text.splitlines():
        command = shlex.split(line.removeprefix("$ ").partition(" #")[0])
        assert command[0] == "punchlist"
        # A person at a terminal is asked.
        if (
            command[1:3] == ["db", "restore"]
            or command[1] in {"install", "uninstall"}
            or command[1:4] == ["trust", "key", "import"]
        ):
            command.append("--yes")
        endless = {"--watch", "--follow"} & set(command)
        done = punchlist(*(word for word in command[1:] if word not in endless))
        assert done.returncode == 0, (line, done.stderr)


@pytest.mark.parametrize("path", DOCUMENTS, ids=NAMES)
def test_links_lead_somewhere(path: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text())
    broken = [target for target in targets if "://" not in target and not (path.parent / target).exists()]
    assert broken == []


def test_the_example_over_mcp_runs_to_its_end() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "lists_over_mcp.py")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Progress: 6/6 (100%)" in done.stdout
    assert "✓ Healthy" in done.stdout
