"""Code, messages and documents use plain engineering English, not the private dialect of early versions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import ROOT

DIALECT = re.compile(
    r"\b(?:somebody|nobody|whoever|anybody|somebody's|nobody's"
    r"|what is so|is so first|gone on with|goes on with|going on with|go on with it"
    r"|as many as there may be|sees? to it|seen through|sees? it through"
    r"|in (?:its|our|their) hands?|in hand(?!-)|at hand"
    r"|what came of|comes of it|came of it|what becomes of|has become of"
    r"|inside of|by itself alone|of strangers|is let in|let in\b|the like of"
    r"|takes? up again|taken up again|is looked after|looks? after"
    r"|purse|studio|crew|errands?|rubbish|premises|clockwork|minutes of|casting)\b",
    re.IGNORECASE,
)
FILES = ("src/**/*.py", "src/**/*.sql", "docs/*.md", "docs/*.py", "examples/*.py", "bench/*.py", "*.md")
ALLOWED = {"CHANGELOG.md", "GLOSSARY.md"}


def written() -> Iterator[Path]:
    for pattern in FILES:
        yield from (path for path in sorted(ROOT.glob(pattern)) if path.name not in ALLOWED)


def test_files_are_written_in_plain_english() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]!r} in {line.strip()!r}"
        for path in written()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for match in DIALECT.finditer(line)
    ]
    assert found == []


def test_modules_are_named_with_nouns() -> None:
    verbs = [path.name for path in sorted((ROOT / "src").rglob("*ing.py")) if path.name not in {"pricing.py"}]
    assert verbs == []


def test_a_class_name_has_one_meaning() -> None:
    """No two modules define a class of the same name."""
    seen: dict[str, list[str]] = {}
    for path in sorted((ROOT / "src").rglob("*.py")):
        for name in re.findall(r"^class (\w+)", path.read_text(), re.MULTILINE):
            seen.setdefault(name, []).append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in seen.items() if len(paths) > 1} == {}


@pytest.mark.parametrize(
    "sentence",
    ["What nobody waits for is written later.", "The turn is gone on with.", "Process 7 has it in hand."],
)
def test_the_word_list_finds_the_dialect(sentence: str) -> None:
    assert DIALECT.search(sentence)
