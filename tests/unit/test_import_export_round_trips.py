"""What a format can hold comes back from it, whatever the items say (X6)."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.unit.examples import examples

from punchlist.import_export.format_limits import fit_items
from punchlist.import_export.formats import FORMATS, ExchangeFormat
from punchlist.import_export.item import ExchangeItem
from punchlist.kernel.text import line_problem
from punchlist.missions.todos.lifecycle import TodoPriority, TodoStatus

NOW = "2026-02-21T09:00:00.000000Z"
HARD = [
    "- [ ] not an item",
    "  - [x] nor this",
    "# no heading",
    "```\n- [ ] in code\n```",
    "~~~",
    "<!-- SECTION:DESCRIPTION:END -->\n## Acceptance Criteria",
    "&lt;!-- AC:BEGIN -->",
    "<!-- AC:END -->",
    "---\nid: task-9\n---",
    "1. one\n2. two\n\n\\- three \\\\- four",
    "a\r\nb\rc",
    "\tindented\n   more\n\n\n  and less",
    "yes",
    "null",
    "2026-01-01",
    "{}: [*a, &b]",
    "'\"\\",
    "#1 [x] - criterion",
]
letters = st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp"))
"""All that a line may have, unassigned code points and what hides from people too."""
one_line = [text.strip() for text in HARD if line_problem(text, max_length=500) is None]
lines = (st.text(letters, max_size=40) | st.sampled_from(one_line)).map(lambda text: text.strip() or "A")
some_lines = st.lists(st.text(letters | st.sampled_from("\t\r "), max_size=20) | st.sampled_from(HARD), max_size=4)
blocks = some_lines.map("\n".join).map(str.strip)
times = st.datetimes().map(lambda at: f"{at.isoformat(timespec='microseconds')}Z").filter(lambda at: at > "1900")
ids = st.sampled_from(
    ["1", "2", "3", "1.1", "1.2", "2.1", "task-1", "TASK-2", "bd-a1", "bd-a1.1", "abcdef", "../x", "é"]
)


@st.composite
def entry_lists(draw: st.DrawFn) -> list[ExchangeItem]:
    """Items that may wait for any other. They share a few texts: to draw new ones for each field takes long, and finds
    nothing more."""
    names = draw(st.lists(ids, unique=True, min_size=1, max_size=5))
    line = st.sampled_from(draw(st.lists(lines, min_size=2, max_size=3)))
    block = st.sampled_from(["", *draw(st.lists(blocks, min_size=2, max_size=3))])
    time = st.sampled_from(["", draw(times)])
    some = st.sets(line, max_size=2).map(lambda found: tuple(sorted(found)))
    fields_of = st.fixed_dictionaries(
        {
            "title": line,
            "details": block,
            "status": st.sampled_from(TodoStatus),
            "priority": st.none() | st.sampled_from(TodoPriority),
            "acceptance": block,
            "active_form": st.just("") | line,
            "owner": st.just("") | line,
            "outcome": block,
            "justification": block,
            "deadline": st.sampled_from(["", "2026-02-21", NOW]),
            "waits": st.just(()) | line.map(lambda text: (("person", text),)),
            "resources": some,
            "also_affects": some,
            "check": st.sampled_from([None, {"name": "tests"}]),
            "created_at": time,
            "started_at": time,
            "ended_at": time,
            "extra": st.sampled_from([{}, {"pillar": "a"}]),
        }
    )
    made: list[ExchangeItem] = []
    for name in names:
        others = [one for one in names if one != name]
        blocked_by = draw(st.lists(st.sampled_from(others), unique=True, max_size=3)) if others else []
        made.append(ExchangeItem(id=name, blocked_by=tuple(blocked_by), **draw(fields_of)))
    return made


def _there_and_back(format: ExchangeFormat, entries: list[ExchangeItem]) -> list[list[ExchangeItem]]:
    """In each way that the format can be written in."""
    came = [format.read(format.write(entries)).items] if format.write else []
    if format.write_files and format.read_files:
        came.append(format.read_files(format.write_files(entries)).items)
    return came


@pytest.mark.spec("X6")
@examples(60)
@given(entry_lists())
@example([ExchangeItem("A", "2"), ExchangeItem("B", "1")])
@example([ExchangeItem("A", "task-2"), ExchangeItem("B", "TASK-2")])
def test_what_a_format_can_hold_comes_back_as_it_was(entries: list[ExchangeItem]) -> None:
    for format in FORMATS.values():
        fitted = fit_items(format.limits, entries, NOW)
        for came in _there_and_back(format, fitted.items) if fitted.items else ():
            assert came == fitted.items, format.name


@pytest.mark.spec("X6")
@pytest.mark.parametrize("name", FORMATS)
def test_what_is_left_out_is_said_and_nothing_else_is(name: str) -> None:
    shape = FORMATS[name].limits
    full = ExchangeItem(
        title="A",
        # What has not ended has no time of its end.
        status=TodoStatus.COMPLETED,
        id="x y",
        details="d",
        priority=TodoPriority.CRITICAL,
        acceptance="c",
        active_form="Doing A",
        owner="o",
        outcome="done",
        justification="j",
        deadline=NOW,
        waits=(("event", "e"),),
        resources=("r",),
        also_affects=("p",),
        check={"name": "n"},
        created_at=NOW,
        started_at=NOW,
        ended_at=NOW,
        extra={"colour": "red"},
    )
    # That it is called what it is while it happens says nothing new.
    assert fit_items(shape, [ExchangeItem("A", active_form="A")], NOW).lost == []
    for one in fields(ExchangeItem):
        blank: Any = ExchangeItem("A", status=TodoStatus.COMPLETED)
        if getattr(full, one.name) == getattr(blank, one.name) or one.name == "title":
            continue
        entry = replace(blank, **{one.name: getattr(full, one.name)})
        fitted = fit_items(shape, [entry], NOW)
        same = getattr(fitted.items[0], one.name) == getattr(entry, one.name)
        assert same == (not fitted.lost), (one.name, fitted)


@pytest.mark.spec("X6")
def test_a_cancelled_item_is_left_out_where_there_is_no_such_state_and_nothing_waits_for_it() -> None:
    entries = [
        ExchangeItem("First", "1", status=TodoStatus.CANCELLED),
        ExchangeItem("Second", "2", blocked_by=("1",)),
        ExchangeItem("Later", "3", status=TodoStatus.BACKLOG),
    ]
    fitted = fit_items(FORMATS["beads"].limits, entries, NOW)
    assert [(one.id, one.title, one.blocked_by) for one in fitted.items] == [
        ("pl-1", "Second", ()),
        ("pl-2", "Later", ()),
    ]
    assert list(map(str, fitted.lost)) == ["1 cancelled item, left out", "id (items are renumbered) of 2 items"]
    assert len(fit_items(FORMATS["taskmaster"].limits, entries, NOW).items) == 3
