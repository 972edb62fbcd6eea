"""Files as the other tools write them, and files that mean harm (X6, W10)."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from tests.unit.hostile import EVERYTHING_HOSTILE, REFUSED_IN_A_LINE

from punchlist.errors import InvalidInput
from punchlist.import_export.formats import FORMATS, guess_export_format, guess_folder_format, guess_import_format
from punchlist.import_export.item import ExchangeItem, ParsedFile
from punchlist.missions.todos.lifecycle import TodoPriority, TodoStatus
from punchlist.surfaces.cli.import_export import FormatChoice

DONE, PENDING, DOING = TodoStatus.COMPLETED, TodoStatus.PENDING, TodoStatus.IN_PROGRESS


def read(format: str, written: str) -> ParsedFile:
    return FORMATS[format].read(written)


def refusal(format: str, written: str) -> str:
    with pytest.raises(InvalidInput) as refused:
        read(format, written)
    return str(refused.value)


def told(entries: list[ExchangeItem]) -> list[tuple[str, str, TodoStatus]]:
    return [(entry.id, entry.title, entry.status) for entry in entries]


def test_the_command_knows_every_format() -> None:
    assert [choice.value for choice in FormatChoice] == list(FORMATS)


# --- as others write them ---------------------------------------------------------------------------------

CHECKLIST = """\
# Release 1.2

Some words before it.

- [ ] Write the notes
  They are for people.

  - for users
  - [x] Ask for *pictures*
\t- [X] by tab
* [~] Build it
+ [/] Sign it
1. [-] Fax it
2) [x] Number it
- [!] Odd mark
- no box
- [x](https://example.com) a link

```
- [ ] in code
```
- [ ] after it
"""


@pytest.mark.spec("X6")
def test_a_checklist_is_read_from_markdown() -> None:
    found = read("markdown", CHECKLIST)
    assert told(found.items) == [
        ("1", "Write the notes", PENDING),
        ("1.1", "Ask for *pictures*", DONE),
        ("1.1.1", "by tab", DONE),
        ("2", "Build it", DOING),
        ("3", "Sign it", DOING),
        ("4", "Fax it", TodoStatus.CANCELLED),
        ("5", "Number it", DONE),
        ("6", "Odd mark", PENDING),
        ("7", "after it", PENDING),
    ]
    assert found.items[0].details == "They are for people.\n\n- for users"
    assert found.remarks == ["a heading is left out", "the mark [!] becomes pending"]


@pytest.mark.spec("X6")
def test_items_in_code_and_comments_are_none_and_those_after_are_not_lost() -> None:
    written = """\
<!--
- [ ] template
-->
<!-- - [ ] off -->
```make test``` runs them
- [ ] A
  ````sh
  ```sh
  - [ ] code
  \\- as it is
  ````
  <!-- - [ ]
  - [ ] note
  -->
- [ ] B
  ```
  never closed
- [ ] C
"""
    found = read("markdown", written)
    assert [entry.title for entry in found.items] == ["A", "B", "C"]
    code = "````sh\n```sh\n- [ ] code\n\\- as it is\n````"
    assert found.items[0].details == code + "\n<!-- - [ ]\n- [ ] note\n-->"
    assert found.remarks == []
    cut = read("markdown", "- [ ] A\n```\n- [ ] B\n")
    assert cut.remarks == ["the block that begins at line 2 has no end; no items are read after it"]


@pytest.mark.spec("X6")
def test_tasks_of_claude_code_are_read_in_the_order_of_their_numbers() -> None:
    tasks: list[dict[str, Any]] = [
        {"id": "10", "subject": "Ship", "description": "", "status": "pending", "blocks": [], "blockedBy": []},
        {
            "id": "2",
            "subject": "Run tests",
            "description": "All of them",
            "activeForm": "Running tests",
            "status": "in_progress",
            "owner": "worker-1",
            "blocks": ["10"],
            "blockedBy": ["1"],
            "metadata": {"why": "x"},
        },
        {"id": "1", "subject": "Write tests", "status": "completed", "blocks": ["2"], "blockedBy": []},
        {"id": "3", "subject": "Gone", "status": "deleted"},
    ]
    read_files = FORMATS["claude"].read_files
    assert read_files
    found = read_files({f"{task['id']}.json": json.dumps(task) for task in tasks} | {".lock": ""})
    assert told(found.items) == [("1", "Write tests", DONE), ("2", "Run tests", DOING), ("10", "Ship", PENDING)]
    two = found.items[1]
    assert (two.details, two.active_form, two.owner) == ("All of them", "Running tests", "worker-1")
    assert [entry.blocked_by for entry in found.items] == [(), ("1",), ("2",)]
    assert two.extra == {"metadata": {"why": "x"}}
    assert found.remarks == ["a deleted task is left out"]


@pytest.mark.spec("X6")
def test_a_time_without_a_zone_is_the_same_wherever_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        (entry,) = read("beads", '{"id": "a-1", "title": "A", "created_at": "2026-01-18 12:16"}').items
    finally:
        monkeypatch.undo()
        time.tzset()
    assert entry.created_at == "2026-01-18T12:16:00.000000Z"


@pytest.mark.spec("X6")
def test_the_older_todos_of_claude_code_are_read_too() -> None:
    todos = [{"content": "Run it", "status": "in_progress", "activeForm": "Running it", "id": "1", "priority": "high"}]
    (entry,) = read("claude", json.dumps(todos)).items
    assert entry == ExchangeItem("Run it", "1", status=DOING, active_form="Running it", priority=TodoPriority.HIGH)


@pytest.mark.spec("X6")
def test_issues_of_beads_are_read() -> None:
    issues: list[dict[str, Any]] = [
        {
            "id": "bd-1",
            "title": "Epic",
            "description": "What",
            "design": "How",
            "notes": "And",
            "acceptance_criteria": "- works",
            "status": "open",
            "priority": 0,
            "issue_type": "epic",
            "assignee": "steve",
            "labels": ["a", "b"],
            "created_at": "2026-01-19T22:12:48.942352085Z",
            "updated_at": "2026-01-19T22:12:49Z",
        },
        {
            "id": "bd-1.1",
            "title": "Done",
            "status": "closed",
            "priority": 4,
            "issue_type": "task",
            "created_at": "2026-01-19T22:12:48+01:00",
            "closed_at": "2026-01-20T10:00:00Z",
            "close_reason": "fixed",
            "dependencies": [
                {"issue_id": "bd-1.1", "depends_on_id": "bd-1", "type": "parent-child"},
                {"issue_id": "bd-1.1", "depends_on_id": "bd-2", "type": "blocks"},
                {"issue_id": "bd-1.1", "depends_on_id": "bd-1", "type": "related"},
                {"issue_id": "bd-1.1", "depends_on_id": "bd-2", "type": "parent-child"},
            ],
        },
        {"id": "bd-2", "title": "Later", "status": "deferred", "priority": 2},
        {"id": "bd-3", "title": "Stuck", "status": "blocked", "priority": 2},
        {"id": "bd-4", "title": "Gone", "status": "tombstone", "priority": 2},
        {"_type": "memory", "key": "a"},
    ]
    found = read("beads", "\n".join(map(json.dumps, issues)) + "\n\n")
    assert read("beads", json.dumps(issues)) == found
    assert told(found.items) == [
        ("bd-1", "Epic", PENDING),
        ("bd-1.1", "Done", DONE),
        ("bd-2", "Later", TodoStatus.BACKLOG),
        ("bd-3", "Stuck", PENDING),
    ]
    epic, done = found.items[:2]
    assert epic.details == "What\n\n## Design\n\nHow\n\n## Notes\n\nAnd"
    assert (epic.acceptance, epic.priority, epic.owner) == ("- works", TodoPriority.CRITICAL, "steve")
    assert epic.created_at == "2026-01-19T22:12:48.942352Z"
    assert epic.extra == {"issue_type": "epic", "labels": ["a", "b"]}
    assert (done.parent, done.blocked_by, done.outcome, done.priority) == ("bd-1", ("bd-2",), "fixed", TodoPriority.LOW)
    assert (done.created_at, done.ended_at) == ("2026-01-19T21:12:48.000000Z", "2026-01-20T10:00:00.000000Z")
    assert found.remarks == [
        "a link of the type 'related' is left out",
        "a link of the type 'parent-child' is left out",
        "the priority 4 becomes low",
        "the state 'blocked' becomes pending",
        "a deleted issue is left out",
        "'memory' is not an issue and is left out",
    ]


TASKS = [
    {
        "id": 1,
        "title": "One",
        "description": "Short",
        "details": "Long",
        "testStrategy": "Run it",
        "status": "done",
        "priority": "high",
        "dependencies": [],
    },
    {
        "id": 2,
        "title": "Two",
        "status": "in-progress",
        "priority": "low",
        "dependencies": [1],
        "subtasks": [
            {"id": 1, "title": "First", "status": "pending", "dependencies": []},
            {"id": 2, "title": "Second", "status": "deferred", "dependencies": [1, "1.1", 3], "complexity": 5},
        ],
    },
    {"id": 3, "title": "Three", "status": "review", "dependencies": ["2"]},
]


@pytest.mark.spec("X6")
@pytest.mark.parametrize("document", [{"tasks": TASKS}, {"master": {"tasks": TASKS, "metadata": {}}}])
def test_tasks_of_task_master_are_read_with_and_without_a_tag(document: dict[str, Any]) -> None:
    found = read("taskmaster", json.dumps(document))
    assert told(found.items) == [
        ("1", "One", DONE),
        ("2", "Two", DOING),
        ("2.1", "First", PENDING),
        ("2.2", "Second", TodoStatus.BACKLOG),
        ("3", "Three", DOING),
    ]
    assert [entry.blocked_by for entry in found.items] == [(), ("1",), (), ("2.1", "3"), ("2",)]
    assert [entry.parent for entry in found.items] == ["", "", "2", "2", ""]
    assert (found.items[0].details, found.items[0].acceptance) == ("Short\n\nLong", "Run it")
    assert found.items[3].extra == {"complexity": 5}
    nearly, unknown = found.remarks
    assert nearly == "the state 'review' becomes in_progress"
    assert unknown.endswith("tasks[1].subtasks[1] depends on '1.1', which is missing; it is left out")


@pytest.mark.spec("X6")
def test_of_several_tags_of_task_master_one_is_read_and_that_is_said() -> None:
    document = {"feature": {"tasks": [{"id": 1, "title": "F"}]}, "master": {"tasks": [{"id": 1, "title": "M"}]}}
    found = read("taskmaster", json.dumps(document))
    assert [entry.title for entry in found.items] == ["M"]
    assert found.remarks == ["the tag 'feature' is left out; only 'master' is read"]


TASK = """\
---
id: BACK-367
title: 'Add: a field'
status: In Progress
assignee:
  - '@codex'
  - '@sara'
created_date: '2026-01-18 12:16'
updated_date: '2026-01-19 18:27'
labels: [core, cli]
dependencies:
  - BACK-1
priority: medium
milestone: m-1
---

## Description

<!-- SECTION:DESCRIPTION:BEGIN -->
### Problem

## Not a section
<!-- SECTION:DESCRIPTION:END -->

## Acceptance Criteria
<!-- AC:BEGIN -->
- [x] #1 It is there
- [ ] #2 It works
<!-- AC:END -->

## Implementation Plan

1. Think

## Implementation Notes

<!-- SECTION:NOTES:BEGIN -->
Thought.
<!-- SECTION:NOTES:END -->

## Final Summary

<!-- SECTION:FINAL_SUMMARY:BEGIN -->
Added.
<!-- SECTION:FINAL_SUMMARY:END -->
"""
PLAIN_TASK = "---\nid: back-1\ntitle: Old\nstatus: Done\nassignee: []\n---\r\n\r\n## Description\r\n\r\nAs it was\r\n"


@pytest.mark.spec("X6")
def test_tasks_of_backlog_md_are_read_with_markers_and_without() -> None:
    read_files = FORMATS["backlog"].read_files
    assert read_files
    found = read_files({"back-367 - Add.md": TASK, "back-1 - Old.md": PLAIN_TASK, "README.md": "# Tasks"})
    assert told(found.items) == [("back-1", "Old", DONE), ("BACK-367", "Add: a field", DOING)]
    old, new = found.items
    assert old.details == "As it was"
    assert new.details == (
        "### Problem\n\n## Not a section\n\n## Implementation Plan\n\n1. Think\n\n## Implementation Notes\n\nThought."
    )
    assert (new.acceptance, new.outcome) == ("It is there\nIt works", "Added.")
    assert (new.owner, new.blocked_by) == ("@codex, @sara", ("back-1",))
    assert (new.priority, new.created_at) == (TodoPriority.MEDIUM, "2026-01-18T12:16:00.000000Z")
    assert new.extra == {"labels": ["core", "cli"], "milestone": "m-1"}
    assert found.remarks == ["README.md is not a task and is left out", "which acceptance criteria are met is left out"]


@pytest.mark.spec("X6")
@pytest.mark.parametrize(
    ("name", "written", "format"),
    [
        ("TODO.md", CHECKLIST, "markdown"),
        ("-", "- [ ] a", "markdown"),
        ("note.md", "---\ntags: [a]\n---\n- [ ] a", "markdown"),
        ("back-367 - Add.md", TASK, "backlog"),
        ("-", PLAIN_TASK, "backlog"),
        ("intro.md", "---\nid: intro\ntitle: Intro\n---\n- [ ] a\n", "markdown"),
        ("issues.jsonl", '{"id": "bd-1", "title": "a"}', "beads"),
        ("-", '{"id": "bd-1", "title": "a", "status": "open"}\n{"id": "bd-2", "title": "b"}\n', "beads"),
        ("-", '{"id": "bd-1", "title": "a", "status": "open"}', "beads"),
        ("-", '[{"id": "bd-1", "title": "a", "status": "open"}]', "beads"),
        ("tasks.json", json.dumps({"tasks": TASKS}), "taskmaster"),
        ("-", json.dumps({"dev": {"tasks": TASKS}}), "taskmaster"),
        ("1.json", '{"id": "1", "subject": "a"}', "claude"),
        ("s-agent-s.json", '[{"content": "a", "status": "pending"}]', "claude"),
        ("-", '{"format": "punchlist", "version": 1, "items": []}', "json"),
    ],
)
def test_what_a_file_is_can_be_told_from_its_name_and_content(name: str, written: str, format: str) -> None:
    assert guess_import_format(name, written).name == format


def test_what_to_write_is_told_from_the_name() -> None:
    names = {
        "-": "json",
        "list.json": "json",
        "a/TODO.md": "markdown",
        "issues.jsonl": "beads",
        ".taskmaster/tasks/tasks.json": "taskmaster",
        "backlog/": "backlog",
        "backlog/tasks": "backlog",
        "/home/me/.claude/tasks/x": "claude",
    }
    assert {name: guess_export_format(name).name for name in names} == names
    assert guess_folder_format({"1.json": ""}).name == "claude"
    assert guess_folder_format({"task-1 - a.md": ""}).name == "backlog"


@pytest.mark.spec("X6")
def test_what_is_taken_as_something_else_or_left_out_is_said() -> None:
    lowest = read("beads", '{"id": "a", "title": "A", "priority": 4}')
    assert (lowest.items[0].priority, lowest.remarks) == (TodoPriority.LOW, ["the priority 4 becomes low"])
    task = "---\nid: task-1\ntitle: A\nstatus: {}\n---\n## Acceptance Criteria\n- [x] #1 Met\n- [ ] #2 Not yet\n"
    assert read("backlog", task.format("To Do")).remarks == ["which acceptance criteria are met is left out"]
    assert read("backlog", task.format("Done")).remarks == []
    subtask = {"id": 1, "title": "B", "subtasks": [{"id": 1, "title": "C"}]}
    deep = {"tasks": [{"id": 1, "title": "A", "subtasks": [subtask]}]}
    assert read("taskmaster", json.dumps(deep)).remarks == [
        "tasks[0].subtasks[0] is a subtask with 1 subtasks of its own; they are left out"
    ]


@pytest.mark.spec("X6")
@pytest.mark.parametrize("written", ["@sara", "[@sara]", '["@sara"]', "\n  - @sara", "'@sara'"])
def test_people_need_no_quotes_in_a_task_of_backlog_md(written: str) -> None:
    (entry,) = read("backlog", f"---\nid: task-1\ntitle: A - @b\nassignee: {written}\n---\n").items
    assert (entry.owner, entry.title) == ("@sara", "A - @b")


@pytest.mark.spec("X6")
@pytest.mark.parametrize(
    ("written", "deadline"), [("2026-03-01", "2026-03-01"), ("'2026-03-01 12:30'", "2026-03-01T12:30:00.000000Z")]
)
def test_the_due_date_of_a_task_of_backlog_md_is_its_deadline(written: str, deadline: str) -> None:
    (entry,) = read("backlog", f"---\nid: task-1\ntitle: A\ndue_date: {written}\n---\n").items
    assert (entry.deadline, entry.extra) == (deadline, {})


# --- and as nobody should ---------------------------------------------------------------------------------

BAD = {
    "no JSON": ("json", "{", "is not JSON (Expecting property name enclosed in double quotes, line 1, column 2)."),
    "another JSON": ("json", "[]", 'It must be an object with "format": "punchlist", "version": 1 and "items".'),
    "a newer version": ("json", '{"format": "punchlist", "version": 2, "items": []}', "newer Punchlist (version 2"),
    "no items": ("json", '{"format": "punchlist", "version": 1, "items": []}', "It contains no items."),
    "an item that is none": (
        "json",
        '{"format": "punchlist", "version": 1, "items": [1]}',
        "items[0]: must be an object",
    ),
    "an unknown field": (
        "json",
        '{"format": "punchlist", "version": 1, "items": [{"title": "a", "activeform": "b"}]}',
        "activeForm",
    ),
    "not a number": ("json", '{"a": NaN}', "NaN is not a JSON number"),
    "a number of 5,000 digits": ("taskmaster", '{"tasks": [{"id": ' + "9" * 5_000 + "}]}", "is not JSON"),
    "deep arrays": ("claude", "[" * 200_000, "is nested too deeply."),
    "deep objects in a line": ("beads", '{"a":' * 200_000, "line 1: is nested too deeply."),
    "text for a list": ("claude", '"a"', "must be a task or an array of tasks, got text"),
    "a task without a subject": ("claude", '[{"id": "1"}]', "[0].subject: is missing"),
    "the same id twice": (
        "beads",
        '{"id": "a", "title": "A"}\n{"id": "a", "title": "B"}',
        "line 2: has the same id as line 1: 'a'",
    ),
    "a bad line": ("beads", '{"id": "a", "title": "A"}\nnonsense', "line 2: is not JSON (Expecting value, column 1)."),
    "every bad line": ("beads", "<<<<\n{}\n>>>>", "line 3: is not JSON"),
    "a bad priority": ("beads", '{"id": "a", "title": "A", "priority": 9}', "line 1, priority: must be a whole number"),
    "dependencies that are none": ("beads", '{"id": "a", "title": "A", "dependencies": "x"}', "must be an array"),
    "a task that is a number": ("taskmaster", '{"tasks": [7]}', "tasks[0]: must be an object, got a number"),
    "no tasks at all": ("taskmaster", '{"a": 1}', 'It must be an object with "tasks"'),
    "no checklist": ("markdown", "# Nothing\n\n- here", "It contains no checklist"),
    "nothing": ("markdown", "", "It contains no checklist"),
    "NUL": ("markdown", "- [ ] a\n- [ ] b\x00c", "line 2: must not contain control characters (U+0000)"),
    "too long a title": ("markdown", "- [ ] " + "a" * 501, "line 1: must be 1 to 500 characters"),
    "too deep a list": ("markdown", "".join(f"{' ' * n}- [ ] a\n" for n in range(1_000)), "line 21: is more than 20"),
    "no front matter": ("backlog", "# A", "does not begin with front matter"),
    "front matter that does not end": ("backlog", "---\nid: a\n", "does not begin with front matter"),
    "front matter that is no table": ("backlog", "---\n- a\n---\n", "its front matter must have an id and a title"),
    "broken front matter": ("backlog", "---\nid: [a\n---\n", "the task: its front matter is not YAML"),
    "front matter that refers to itself": (
        "backlog",
        "---\na: &a [x, x]\nb: &b [*a, *a]\nid: *b\n---\n",
        "aliases are not allowed",
    ),
    "large front matter": ("backlog", "---\nid: " + "a" * 16_000 + "\n---\n", "16,004 characters; the limit is 16,000"),
    "deep front matter": ("backlog", "---\nid: " + "[" * 15_000 + "\n---\n", "the task: its front matter"),
    "front matter with a tag": ("backlog", "---\nid: !!python/object:os.system x\n---\n", "title: is missing"),
}


@pytest.mark.spec("X6")
@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_read_is_refused_with_its_place(case: str) -> None:
    format, written, message = BAD[case]
    assert message in refusal(format, written)


@pytest.mark.spec("W10", "X6")
@pytest.mark.parametrize("hostile", REFUSED_IN_A_LINE)
def test_a_title_that_could_act_is_refused_in_every_format(hostile: str) -> None:
    title = f"a{REFUSED_IN_A_LINE[hostile]}b"
    documents: dict[str, Any] = {
        "json": {"format": "punchlist", "version": 1, "items": [{"title": title}]},
        "claude": [{"id": "1", "subject": title}],
        "beads": {"id": "a-1", "title": title},
        "taskmaster": {"tasks": [{"id": 1, "title": title}]},
    }
    for format, document in documents.items():
        assert "must not contain" in refusal(format, json.dumps(document)), format
    assert "must not contain" in refusal("backlog", f"---\nid: task-1\ntitle: {json.dumps(title)}\n---\n") or (
        "cannot be read" in refusal("backlog", f"---\nid: task-1\ntitle: {json.dumps(title)}\n---\n")
    )
    if not set(title) & set("\n\r"):
        assert "must not contain" in refusal("markdown", f"- [ ] {title}")


@pytest.mark.spec("W10")
def test_an_error_shows_nothing_that_acts() -> None:
    for text in EVERYTHING_HOSTILE.values():
        for format, document in {
            "beads": {"id": text, "title": text, "status": text, "dependencies": [{"depends_on_id": text}]},
            "claude": {"id": "1", "subject": "a", "status": text, "blockedBy": [f"{text}1"]},
            "taskmaster": {text: {"tasks": []}, "b": {"tasks": [{"id": 1, "title": text, "priority": text}]}},
        }.items():
            try:
                said = " ".join(read(format, json.dumps(document)).remarks)
            except InvalidInput as error:
                said = str(error)
            assert not set(said) & {*"\x1b\x00\x07\x08\x9b\u202e\u200f"}, (format, said)


@pytest.mark.spec("X6")
def test_what_hangs_on_nothing_is_left_out_and_said() -> None:
    issues = [
        {"id": "a-1", "title": "A", "dependencies": [{"depends_on_id": "a-1"}, {"depends_on_id": "a-9"}]},
        {"id": "a-2", "title": "B", "dependencies": [{"depends_on_id": "a-3", "type": "parent-child"}]},
        {"id": "a-3", "title": "C", "dependencies": [{"depends_on_id": "a-2", "type": "parent-child"}]},
        {"id": "a-4", "title": "D", "status": "wat", "dependencies": [{"depends_on_id": "x", "type": "parent-child"}]},
    ]
    found = read("beads", "\n".join(map(json.dumps, issues)))
    assert [(one.blocked_by, one.parent) for one in found.items] == [((), ""), ((), "a-3"), ((), "a-2"), ((), "")]
    assert found.remarks == [
        "the state 'wat' becomes pending",
        "line 1 depends on itself; the dependency is left out",
        "line 1 depends on 'a-9', which is missing; it is left out",
        "line 4 has the parent 'x', which is missing; it is left out",
    ]


@pytest.mark.spec("X6")
def test_the_name_of_a_file_leads_nowhere_else() -> None:
    titles = ["../../etc/passwd", "/", "..", "a\\b:c*?", "CON", "日本 語" * 60, "."]
    files = FORMATS["backlog"].write_files
    assert files
    names = list(files([ExchangeItem(title, f"task-{n}") for n, title in enumerate(titles, start=1)]))
    assert names[0] == "task-1 - etc-passwd.md"
    assert names[1:3] == ["task-2 - task.md", "task-3 - task.md"]
    for name in names:
        assert not set(name) & set('/\\:*?"<>|\0')
        assert len(name.encode()) <= 255


@pytest.mark.spec("X6")
def test_a_large_file_is_read_in_time() -> None:
    lines = "".join(f"- [ ] Task {n}\n  What to do\n" for n in range(10_000))
    assert len(read("markdown", lines).items) == 10_000
    assert "It has 10,001 items; the limit is 10,000." in refusal("markdown", "- [ ] a\n" * 10_001)
