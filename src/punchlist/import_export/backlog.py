"""Tasks of Backlog.md: a Markdown file for each, with front matter and sections between markers.

The front matter is read by YAML's plainest loader, which makes nothing but text, lists and tables; what
refers to something else in it is refused, since that is how a small file becomes a large one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from punchlist.errors import InvalidInput
from punchlist.import_export.format_limits import FormatLimits, id_pattern
from punchlist.import_export.item import ExchangeItem, Loss, ParsedFile
from punchlist.import_export.reader import Reader, joined, leftover
from punchlist.kernel.text import excerpt
from punchlist.missions.todos.lifecycle import TodoPriority, TodoStatus

STATES: Final = {TodoStatus.PENDING: "To Do", TodoStatus.IN_PROGRESS: "In Progress", TodoStatus.COMPLETED: "Done"}
KNOWN: Final = (
    "id",
    "title",
    "status",
    "assignee",
    "labels",
    "dependencies",
    "priority",
    "parent_task_id",
    "subtasks",
    "created_date",
    "updated_date",
    "ordinal",
    "due_date",
)
LONGEST_MATTER: Final = 16_000
LONGEST_NAME: Final = 60
"""Characters of a title in the name of its file: four bytes each still make a name that a disk takes."""
STEP: Final = 1_000
"""Between the ordinals of two tasks, so that one can be put between them."""

DAY: Final = len("2026-02-21")
DESCRIPTION: Final = "description"
CRITERIA: Final = "acceptance criteria"
SUMMARY: Final = "final summary"
MARKED: Final = {
    "SECTION:DESCRIPTION": DESCRIPTION,
    "SECTION:PLAN": "implementation plan",
    "SECTION:NOTES": "implementation notes",
    "SECTION:FINAL_SUMMARY": SUMMARY,
    "AC": CRITERIA,
    "DOD": "definition of done",
    "COMMENTS": "comments",
}
HEADINGS: Final = {name: name.title().replace(" Of ", " of ") for name in MARKED.values()}
_MARKER: Final = re.compile(r"\s*<!--\s*(?P<name>[A-Z_:]+):(?P<edge>BEGIN|END)\s*-->\s*")
_HEADING: Final = re.compile(r"##\s+(?P<title>.+?)\s*#*\s*")
_CRITERION: Final = re.compile(r"\s*[-*+]\s+\[(?P<mark>.)\]\s+(?:#\d+\s+)?(?P<text>.*)")
_BULLET: Final = re.compile(r"(?:[-*+]\s+)?(?:\[.\]\s+)?(?:#\d+\s+)?")
_PEOPLE: Final = re.compile(r"(?m)^(?:(?:assignee|reporter):.*|[ \t]*-[ \t]+@.*)$")
_PERSON: Final = re.compile(r"([:\-\[,][ \t]*)(@[^\s,\]'\"]+)")
_FORGED: Final = re.compile(r"(<|&(?:amp;)*lt;)(?=!--\s*(?:SECTION|AC|DOD|COMMENTS?):)")
_ESCAPED: Final = re.compile(r"(&(?:amp;)*lt;)(?=!--\s*(?:SECTION|AC|DOD|COMMENTS?):)")


def _trim(entries: list[ExchangeItem]) -> tuple[list[ExchangeItem], list[Loss]]:
    return [
        replace(
            entry,
            details=_unix(entry.details),
            outcome=_unix(entry.outcome),
            acceptance="\n".join(_criteria(entry.acceptance)),
            created_at=_to_the_minute(entry.created_at),
            deadline=_to_the_minute(entry.deadline),
        )
        for entry in entries
    ], []


def _to_the_minute(time: str) -> str:
    """A time as the front matter can say it; a day is one as it is."""
    return f"{time[:16]}:00.000000Z" if len(time) > DAY else time


def _unix(written: str) -> str:
    return written.replace("\r\n", "\n").replace("\r", "\n").strip()


def _criteria(acceptance: str) -> list[str]:
    """One for each line, without the bullets that it may have."""
    lines = (line.strip() for line in _unix(acceptance).split("\n"))
    return [told for line in lines if (told := _BULLET.sub("", line, count=1).strip())]


SHAPE: Final = FormatLimits(
    "backlog",
    frozenset(
        {
            "id",
            "title",
            "details",
            "status",
            "priority",
            "blocked_by",
            "parent",
            "acceptance",
            "labels",
            "owner",
            "outcome",
            "deadline",
            "created_at",
        }
    ),
    states={TodoStatus.CANCELLED: None, TodoStatus.BACKLOG: TodoStatus.PENDING},
    priorities={TodoPriority.CRITICAL: TodoPriority.HIGH},
    id_form=id_pattern(r"[A-Za-z]{1,20}-[0-9]{1,9}(\.[0-9]{1,9}){0,5}"),
    numbered=lambda number, parent: f"{parent}.{number:02}" if parent else f"task-{number}",
    trim=_trim,
)


def files(entries: list[ExchangeItem]) -> dict[str, str]:
    return {_name(entry): _task(entry, place) for place, entry in enumerate(entries, start=1)}


def _name(entry: ExchangeItem) -> str:
    """What the file is called; nothing of a title can lead out of the folder."""
    words = "-".join(re.findall(r"\w+", entry.title))[:LONGEST_NAME].strip("-")
    return f"{entry.id} - {words or 'task'}.md"


def _task(entry: ExchangeItem, place: int) -> str:
    import yaml

    matter: dict[str, Any] = {
        "id": entry.id,
        "title": entry.title,
        "status": STATES[entry.status],
        "assignee": entry.owner.split(", ") if entry.owner else [],
        **({"created_date": entry.created_at[:16].replace("T", " ")} if entry.created_at else {}),
        "labels": list(entry.labels),
        "dependencies": list(entry.blocked_by),
        **({"parent_task_id": entry.parent} if entry.parent else {}),
        **({"priority": entry.priority.value} if entry.priority else {}),
        **({"due_date": entry.deadline[:16].replace("T", " ")} if entry.deadline else {}),
        "ordinal": place * STEP,
    }
    front = yaml.safe_dump(matter, allow_unicode=True, sort_keys=False, width=100_000)
    mark = "x" if entry.status is TodoStatus.COMPLETED else " "
    lines = entry.acceptance.split("\n") if entry.acceptance else []
    criteria = [f"- [{mark}] #{number} {_safe(line)}" for number, line in enumerate(lines, start=1)]
    return "\n".join(
        [
            f"---\n{front}---\n",
            *_section("SECTION:DESCRIPTION", _safe(entry.details)),
            *_section("AC", "\n".join(criteria)),
            *_section("SECTION:FINAL_SUMMARY", _safe(entry.outcome)),
        ]
    )


def _section(marker: str, body: str) -> list[str]:
    if not body:
        return []
    heading = HEADINGS[MARKED[marker]]
    return [f"## {heading}\n", f"<!-- {marker}:BEGIN -->", body, f"<!-- {marker}:END -->\n"]


def _safe(written: str) -> str:
    """Without markers of its own: they are spelled out."""
    return _FORGED.sub(lambda found: "&lt;" if found[1] == "<" else f"&amp;{found[1][1:]}", written)


def _plain(written: str) -> str:
    return _ESCAPED.sub(lambda found: "<" if found[1] == "&lt;" else f"&{found[1][5:]}", written)


def read(written: str) -> ParsedFile:
    return read_files({"": written})


def read_files(files: Mapping[str, str]) -> ParsedFile:
    reader = Reader()
    read = []
    for name, written in files.items():
        where = excerpt(name, 100) if name else "the task"
        if name and not written.lstrip().startswith("---"):
            reader.remark(f"{where} is no task and left out")
        else:
            with reader.collecting():
                read.append((where, *_parts(where, _unix(written))))
    # An id may be written in small letters here and in large ones there.
    ids = {str(matter.get("id", "")).lower(): str(matter.get("id", "")) for _, matter, _ in read}
    for where, matter, body in sorted(read, key=_order):
        reader.add(where, _entry(reader, where, matter, body, ids))
    return reader.done()


def _order(task: tuple[str, Mapping[str, Any], str]) -> tuple[float, list[int], str]:
    """By its ordinal; those without one after, by the numbers of their ids."""
    where, matter, _ = task
    try:
        ordinal = float(str(matter.get("ordinal", "inf")))
    except ValueError:
        ordinal = math.inf
    numbers = [int(number[:9]) for number in re.findall("[0-9]+", str(matter.get("id")))]
    return math.inf if math.isnan(ordinal) else ordinal, numbers, where


def _parts(where: str, written: str) -> tuple[dict[str, Any], str]:
    """The front matter, and what comes after it."""
    found = re.match(r"---[ \t]*\n(.*?)\n---[ \t]*(?:\n|$)", written, re.DOTALL)
    if found is None:
        raise InvalidInput(f"{where}: does not begin with front matter between two lines of `---`.")
    if len(found[1]) > LONGEST_MATTER:
        raise InvalidInput(f"{where}: its front matter has {len(found[1]):,} characters; at most {LONGEST_MATTER:,}.")
    return _matter(where, found[1]), written[found.end() :]


def _matter(where: str, written: str) -> dict[str, Any]:
    import yaml

    class Plain(yaml.BaseLoader):
        def compose_node(self, parent: Any, index: int) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("it refers to another part of itself, which is not read")
            return super().compose_node(parent, index)

    # Backlog.md takes the name of a person as it is, which YAML does not.
    quoted = _PEOPLE.sub(lambda line: _PERSON.sub(r"\1'\2'", line[0]), written)
    try:
        matter = yaml.load(quoted, Loader=Plain)
    except yaml.MarkedYAMLError as error:
        line = f" (line {error.problem_mark.line + 2})" if error.problem_mark else ""
        raise InvalidInput(f"{where}: its front matter is not YAML: {excerpt(str(error.problem))}{line}.") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        told = "nested too deeply" if isinstance(error, RecursionError) else excerpt(str(error).partition("\n")[0], 100)
        raise InvalidInput(f"{where}: its front matter cannot be read: {told}.") from None
    if not isinstance(matter, dict):
        raise InvalidInput(f"{where}: its front matter must have an id and a title.")
    return matter


def _entry(reader: Reader, where: str, matter: Mapping[str, Any], body: str, ids: Mapping[str, str]) -> ExchangeItem:
    sections = _sections(body)
    status = reader.status(f"{where}, status", matter.get("status"))
    criteria = [_criterion(line) for line in sections.get(CRITERIA, "").split("\n") if line.strip()]
    # Those of a task that is done are met, as we write them.
    if status is not TodoStatus.COMPLETED and any(met for met, _ in criteria):
        reader.remark("which acceptance criteria are met is left out")
    rest = [(HEADINGS.get(name, name), told) for name, told in sections.items() if name not in _TOLD]
    details = joined(("", sections.get(DESCRIPTION, "")), *rest)
    assignee = matter.get("assignee")
    owners = [assignee] if isinstance(assignee, str) and assignee else reader.array(f"{where}, assignee", assignee)
    labels = matter.get("labels")
    return ExchangeItem(
        title=reader.title(f"{where}, title", matter.get("title")),
        id=reader.id(f"{where}, id", matter.get("id"), required=True),
        details=reader.block(f"{where}, description", details),
        status=status,
        priority=reader.priority(f"{where}, priority", matter.get("priority")),
        blocked_by=tuple(
            dict.fromkeys(
                ids.get(one.lower(), one) for one in reader.ids(f"{where}, dependencies", matter.get("dependencies"))
            )
        ),
        parent=_named(reader.id(f"{where}, parent_task_id", matter.get("parent_task_id")), ids),
        acceptance=reader.block(f"{where}, acceptance criteria", "\n".join(told for _, told in criteria)),
        labels=reader.lines(f"{where}, labels", [labels] if isinstance(labels, str) and labels else labels),
        owner=reader.line(f"{where}, assignee", ", ".join(str(one) for one in owners)),
        outcome=reader.block(f"{where}, final summary", sections.get(SUMMARY, "")),
        deadline=_due(reader, f"{where}, due_date", matter.get("due_date")),
        created_at=reader.time(f"{where}, created_date", matter.get("created_date")),
        extra=leftover(matter, KNOWN),
    )


_TOLD: Final = (DESCRIPTION, CRITERIA, SUMMARY)


def _due(reader: Reader, where: str, raw: Any) -> str:
    time = reader.time(where, raw)
    return time[:DAY] if time and len(str(raw).strip()) == DAY else time


def _named(id: str, ids: Mapping[str, str]) -> str:
    return ids.get(id.lower(), id)


def _sections(body: str) -> dict[str, str]:
    """By name: what is between markers or, without them, what comes after a heading."""
    found: dict[str, list[str]] = {}
    name, marker = DESCRIPTION, ""
    for line in body.split("\n"):
        edge = _MARKER.fullmatch(line)
        if marker:
            if edge and edge["edge"] == "END" and edge["name"] == marker:
                marker = ""
            else:
                found.setdefault(name, []).append(line)
        elif edge and edge["edge"] == "BEGIN" and edge["name"] in MARKED:
            marker, name = edge["name"], MARKED[edge["name"]]
        elif heading := _HEADING.fullmatch(line):
            title = heading["title"]
            name = title.lower() if title.lower() in HEADINGS else title
        else:
            found.setdefault(name, []).append(line)
    return {name: told for name, lines in found.items() if (told := _plain("\n".join(lines)).strip())}


def _criterion(line: str) -> tuple[bool, str]:
    """Whether it is met, and what it says."""
    found = _CRITERION.fullmatch(line)
    return (found["mark"] in "xX", found["text"]) if found else (False, line.strip())
