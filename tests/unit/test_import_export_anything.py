"""Whatever a file says, it is read or refused; and what is read can be written again (X6)."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.examples import examples
from tests.unit.hostile import any_text

from punchlist.errors import InvalidInput
from punchlist.import_export.format_limits import fit_items
from punchlist.import_export.formats import FORMATS, guess_import_format
from punchlist.import_export.item import ExchangeItem

NOW = "2026-02-21T09:00:00.000000Z"
KEYS = [
    "id",
    "title",
    "subject",
    "content",
    "status",
    "state",
    "priority",
    "description",
    "details",
    "design",
    "notes",
    "activeForm",
    "blockedBy",
    "blocks",
    "dependencies",
    "subtasks",
    "parent",
    "waits",
    "labels",
    "assignee",
    "issue_type",
    "testStrategy",
    "created_at",
    "closed_at",
    "check",
    "extra",
    "depends_on_id",
    "type",
    "issue_id",
    "person",
]
WORDS = [
    "",
    "A",
    "1",
    "2",
    "1.1",
    "1.2",
    "a-1",
    "task-1",
    "done",
    "open",
    "high",
    "blocks",
    "parent-child",
    "2026-01-01",
]
# Most are what would be right somewhere, so that reading gets past the first field.
leaves = st.sampled_from([*WORDS, None, True, 0, 1, 2, 1.5, -1, 10**20]) | any_text
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5)
)
titled = st.fixed_dictionaries(
    {"title": st.sampled_from(WORDS), "subject": st.sampled_from(WORDS), "id": st.sampled_from(WORDS)},
    optional={
        "status": leaves,
        "dependencies": st.lists(st.sampled_from(WORDS) | values, max_size=3),
        "blockedBy": st.lists(st.sampled_from(WORDS), max_size=3),
        "parent": st.sampled_from(WORDS),
        "subtasks": st.lists(st.fixed_dictionaries({"id": st.sampled_from(WORDS), "title": st.just("S")}), max_size=3),
        "priority": st.sampled_from([0, 4, "high", "x"]),
    },
)
items = st.lists(titled | values, max_size=5)
marks = st.lists(
    st.sampled_from(
        ["- [ ] A", "  - [x] B", "\t* [-] C", "    text", "", "```", "---", "id: task-1", "title: T", "## X"]
    )
    | st.sampled_from(
        ["<!-- AC:BEGIN -->", "<!-- SECTION:NOTES:END -->", "- [ ]", "labels: [a, *b]", "parent_task_id: task-1"]
    )
    | any_text,
    max_size=12,
).map("\n".join)


def _read(format: str, written: str) -> list[ExchangeItem]:
    try:
        return FORMATS[format].read(written).items
    except InvalidInput:
        return []


def _written_again(entries: list[ExchangeItem]) -> None:
    for format in FORMATS.values():
        fitted = fit_items(format.limits, entries, NOW).items
        if fitted and format.write:
            assert len(format.read(format.write(fitted)).items) == len(fitted)
        if fitted and format.write_files and format.read_files:
            assert len(format.read_files(format.write_files(fitted)).items) == len(fitted)


@pytest.mark.spec("X6")
@examples(50)
@given(items)
def test_any_json_is_read_or_refused(items: list[Any]) -> None:
    documents: dict[str, Any] = {
        "json": {"format": "punchlist", "version": 1, "items": items},
        "claude": items,
        "taskmaster": {"tasks": items},
        "beads": items,
    }
    for format, document in documents.items():
        _written_again(_read(format, json.dumps(document)))


@pytest.mark.spec("X6")
@examples(50)
@given(marks | any_text)
def test_any_text_is_read_or_refused(written: str) -> None:
    for format in FORMATS:
        _written_again(_read(format, written))
    _written_again(_read("backlog", f"---\nid: task-1\ntitle: T\n---\n{written}"))
    with suppress(InvalidInput):
        assert guess_import_format("-", written).name in FORMATS
