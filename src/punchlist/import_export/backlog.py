"""Tasks of Backlog.md: a Markdown file per task, with front matter and sections between markers.

The front matter is parsed with YAML's base loader, which creates only strings, lists and mappings. Aliases
are refused, because they let a small file expand to a large one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from punchlist.errors import InvalidInput
from punchlist.import_export.format_limits import FormatLimits
from punchlist.import_export.item import FIELDS, ExchangeItem, ParsedFile
from punchlist.import_export.reader import Reader, Record, join_sections
from punchlist.kernel.text import excerpt
from punchlist.missions.todos.lifecycle import TodoPriority, TodoStatus

STATES: Final = {TodoStatus.PENDING: "To Do", TodoStatus.IN_PROGRESS: "In Progress", TodoStatus.COMPLETED: "Done"}
MAX_FRONT_MATTER_LENGTH: Final = 16_000
MAX_TITLE_IN_NAME: Final = 60
"""Characters; at four bytes each the file name still fits the limit of file systems."""
ORDINAL_STEP: Final = 1_000
"""Between two tasks, so that another one fits between them."""

_DATE_LENGTH: Final = len("2026-02-21")
DESCRIPTION: Final = "description"
CRITERIA: Final = "acceptance criteria"
SUMMARY: Final = "final summary"
SECTIONS: Final = {
    "SECTION:DESCRIPTION": DESCRIPTION,
    "SECTION:PLAN": "implementation plan",
    "SECTION:NOTES": "implementation notes",
    "SECTION:FINAL_SUMMARY": SUMMARY,
    "AC": CRITERIA,
    "DOD": "definition of done",
    "COMMENTS": "comments",
}
HEADINGS: Final = {name: name.title().replace(" Of ", " of ") for name in SECTIONS.values()}
_FRONT_MATTER: Final = re.compile(r"---[ \t]*\n(.*?)\n---[ \t]*(?:\n|$)", re.DOTALL)
_MARKER: Final = re.compile(r"\s*<!--\s*(?P<name>[A-Z_:]+):(?P<edge>BEGIN|END)\s*-->\s*")
_HEADING: Final = re.compile(r"##\s+(?P<title>.+?)\s*#*\s*")
_CRITERION: Final = re.compile(r"\s*[-*+]\s+\[(?P<mark>.)\]\s+(?:#\d+\s+)?(?P<text>.*)")
_BULLET: Final = re.compile(r"(?:[-*+]\s+)?(?:\[.\]\s+)?(?:#\d+\s+)?")
_PEOPLE: Final = re.compile(r"(?m)^(?:(?:assignee|reporter):.*|[ \t]*-[ \t]+@.*)$")
_PERSON: Final = re.compile(r"([:\-\[,][ \t]*)(@[^\s,\]'\"]+)")
_FORGED_MARKER: Final = re.compile(r"(<|&(?:amp;)*lt;)(?=!--\s*(?:SECTION|AC|DOD|COMMENTS?):)")
_ESCAPED_MARKER: Final = re.compile(r"(&(?:amp;)*lt;)(?=!--\s*(?:SECTION|AC|DOD|COMMENTS?):)")


def _trim(item: ExchangeItem) -> ExchangeItem:
    return replace(
        item,
        details=_unix(item.details),
        outcome=_unix(item.outcome),
        acceptance="\n".join(_split_criteria(item.acceptance)),
        created_at=_to_minute(item.created_at),
        deadline=_to_minute(item.deadline),
    )


def _to_minute(time: str) -> str:
    """The front matter has times to the minute, and dates."""
    return f"{time[:16]}:00.000000Z" if len(time) > _DATE_LENGTH else time


def _unix(written: str) -> str:
    return written.replace("\r\n", "\n").replace("\r", "\n").strip()


def _split_criteria(acceptance: str) -> list[str]:
    """One criterion per line, without its bullet."""
    lines = (line.strip() for line in _unix(acceptance).split("\n"))
    return [criterion for line in lines if (criterion := _BULLET.sub("", line, count=1).strip())]


LIMITS: Final = FormatLimits(
    "backlog",
    frozenset(FIELDS)
    - {"parent", "active_form", "justification", "waits", "resources", "also_affects", "check"}
    - {"started_at", "ended_at", "extra"},
    states={TodoStatus.CANCELLED: None, TodoStatus.BACKLOG: TodoStatus.PENDING},
    priorities={TodoPriority.CRITICAL: TodoPriority.HIGH},
    id_form=r"[A-Za-z]{1,20}-[0-9]{1,9}(\.[0-9]{1,9}){0,5}",
    numbered="task-{}",
    trims={"": _trim},
)


def write_files(items: list[ExchangeItem]) -> dict[str, str]:
    return {_file_name(item): _task(item, position) for position, item in enumerate(items, start=1)}


def _file_name(item: ExchangeItem) -> str:
    """Only word characters of the title are used, so that the name stays inside the folder."""
    words = "-".join(re.findall(r"\w+", item.title))[:MAX_TITLE_IN_NAME].strip("-")
    return f"{item.id} - {words or 'task'}.md"


def _task(item: ExchangeItem, position: int) -> str:
    import yaml

    matter: dict[str, Any] = {
        "id": item.id,
        "title": item.title,
        "status": STATES[item.status],
        "assignee": item.owner.split(", ") if item.owner else [],
        **({"created_date": item.created_at[:16].replace("T", " ")} if item.created_at else {}),
        "labels": [],
        "dependencies": list(item.blocked_by),
        **({"priority": item.priority.value} if item.priority else {}),
        **({"due_date": item.deadline[:16].replace("T", " ")} if item.deadline else {}),
        "ordinal": position * ORDINAL_STEP,
    }
    front = yaml.safe_dump(matter, allow_unicode=True, sort_keys=False, width=100_000)
    mark = "x" if item.status is TodoStatus.COMPLETED else " "
    lines = item.acceptance.split("\n") if item.acceptance else []
    criteria = [f"- [{mark}] #{number} {_escape(line)}" for number, line in enumerate(lines, start=1)]
    return "\n".join(
        [
            f"---\n{front}---\n",
            *_section("SECTION:DESCRIPTION", _escape(item.details)),
            *_section("AC", "\n".join(criteria)),
            *_section("SECTION:FINAL_SUMMARY", _escape(item.outcome)),
        ]
    )


def _section(marker: str, body: str) -> list[str]:
    if not body:
        return []
    heading = HEADINGS[SECTIONS[marker]]
    return [f"## {heading}\n", f"<!-- {marker}:BEGIN -->", body, f"<!-- {marker}:END -->\n"]


def _escape(written: str) -> str:
    """Escape markers inside a text."""
    return _FORGED_MARKER.sub(lambda found: "&lt;" if found[1] == "<" else f"&amp;{found[1][1:]}", written)


def _unescape(written: str) -> str:
    return _ESCAPED_MARKER.sub(lambda found: "<" if found[1] == "&lt;" else f"&{found[1][5:]}", written)


def read(written: str) -> ParsedFile:
    return read_files({"": written})


def read_files(files: Mapping[str, str]) -> ParsedFile:
    reader = Reader()
    tasks = []
    for name, written in files.items():
        where = excerpt(name, 100) if name else "the task"
        if name and not written.lstrip().startswith("---"):
            reader.remark(f"{where} is not a task and is left out")
        else:
            with reader.collect_problems():
                tasks.append((where, *_split(where, _unix(written))))
    # References may spell an id in another case.
    ids = {str(matter.get("id", "")).lower(): str(matter.get("id", "")) for _, matter, _ in tasks}
    for where, matter, body in sorted(tasks, key=_sort_key):
        reader.add(where, _parse_task(reader, where, Record(reader, where, matter, ", "), body, ids))
    return reader.result()


def _sort_key(task: tuple[str, Mapping[str, Any], str]) -> tuple[float, list[int], str]:
    """By ordinal; tasks without one follow, by the numbers in their ids."""
    where, matter, _ = task
    try:
        ordinal = float(str(matter.get("ordinal", "inf")))
    except ValueError:
        ordinal = math.inf
    numbers = [int(number[:9]) for number in re.findall("[0-9]+", str(matter.get("id")))]
    return math.inf if math.isnan(ordinal) else ordinal, numbers, where


def _split(where: str, written: str) -> tuple[dict[str, Any], str]:
    """The front matter, and the body."""
    found = _FRONT_MATTER.match(written)
    if found is None:
        raise InvalidInput(f"{where}: does not begin with front matter between two lines of `---`.")
    if len(found[1]) > MAX_FRONT_MATTER_LENGTH:
        raise InvalidInput(
            f"{where}: its front matter has {len(found[1]):,} characters; the limit is {MAX_FRONT_MATTER_LENGTH:,}."
        )
    return _parse_front_matter(where, found[1]), written[found.end() :]


def _parse_front_matter(where: str, written: str) -> dict[str, Any]:
    import yaml

    class Loader(yaml.BaseLoader):
        def compose_node(self, parent: Any, index: int) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("aliases are not allowed")
            return super().compose_node(parent, index)

    # Backlog.md writes names of people without the quotes that YAML requires.
    quoted = _PEOPLE.sub(lambda line: _PERSON.sub(r"\1'\2'", line[0]), written)
    try:
        matter = yaml.load(quoted, Loader=Loader)
    except yaml.MarkedYAMLError as error:
        line = f" (line {error.problem_mark.line + 2})" if error.problem_mark else ""
        raise InvalidInput(f"{where}: its front matter is not YAML: {excerpt(str(error.problem))}{line}.") from None
    except RecursionError:
        raise InvalidInput(f"{where}: its front matter is nested too deeply.") from None
    except (yaml.YAMLError, ValueError) as error:
        reason = excerpt(str(error).partition("\n")[0], 100)
        raise InvalidInput(f"{where}: its front matter cannot be read: {reason}.") from None
    if not isinstance(matter, dict):
        raise InvalidInput(f"{where}: its front matter must have an id and a title.")
    return matter


def _parse_task(reader: Reader, where: str, matter: Record, body: str, ids: Mapping[str, str]) -> ExchangeItem:
    sections = _parse_sections(body)
    fields = matter.fields("title", "status", "priority", created_at="created_date")
    criteria = [_parse_criterion(line) for line in sections.pop(CRITERIA, "").split("\n") if line.strip()]
    # All criteria of a completed task count as met.
    if fields["status"] is not TodoStatus.COMPLETED and any(met for met, _ in criteria):
        reader.remark("which acceptance criteria are met is left out")
    description, summary = sections.pop(DESCRIPTION, ""), sections.pop(SUMMARY, "")
    details = join_sections(("", description), *((HEADINGS.get(name, name), part) for name, part in sections.items()))
    assignee = matter.get("assignee")
    owners = [assignee] if isinstance(assignee, str) and assignee else reader.array(f"{where}, assignee", assignee)
    dependencies, parent = matter.read(Reader.ids, "dependencies"), matter.read(Reader.id, "parent_task_id")
    return ExchangeItem(
        **fields,
        id=matter.read(Reader.id, "id", required=True),
        details=reader.block(f"{where}, description", details),
        blocked_by=tuple(dict.fromkeys(ids.get(each.lower(), each) for each in dependencies)),
        parent=ids.get(parent.lower(), parent),
        acceptance=reader.block(f"{where}, acceptance criteria", "\n".join(criterion for _, criterion in criteria)),
        owner=reader.line(f"{where}, assignee", ", ".join(map(str, owners))),
        outcome=reader.block(f"{where}, final summary", summary),
        deadline=matter.read(_parse_deadline, "due_date"),
        extra=matter.unread("subtasks", "updated_date", "ordinal"),
    )


def _parse_deadline(reader: Reader, where: str, raw: Any) -> str:
    time = reader.time(where, raw)
    return time[:_DATE_LENGTH] if time and len(str(raw).strip()) == _DATE_LENGTH else time


def _parse_sections(body: str) -> dict[str, str]:
    """The sections by name: the text between markers or, without markers, after a heading."""
    sections: dict[str, list[str]] = {}
    name, marker = DESCRIPTION, ""
    for line in body.split("\n"):
        edge = _MARKER.fullmatch(line)
        if marker:
            if edge and edge["edge"] == "END" and edge["name"] == marker:
                marker = ""
            else:
                sections.setdefault(name, []).append(line)
        elif edge and edge["edge"] == "BEGIN" and edge["name"] in SECTIONS:
            marker, name = edge["name"], SECTIONS[edge["name"]]
        elif heading := _HEADING.fullmatch(line):
            title = heading["title"]
            name = title.lower() if title.lower() in HEADINGS else title
        else:
            sections.setdefault(name, []).append(line)
    return {name: text for name, lines in sections.items() if (text := _unescape("\n".join(lines)).strip())}


def _parse_criterion(line: str) -> tuple[bool, str]:
    """Whether the criterion is met, and its text."""
    found = _CRITERION.fullmatch(line)
    return (found["mark"] in "xX", found["text"]) if found else (False, line.strip())
