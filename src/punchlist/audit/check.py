"""`punchlist db check`: verifies a database in one pass.

SQLite's own check finds broken pages and indexes. The hash chains find events that were changed, deleted or moved. The
replay finds rows that differ from their events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from punchlist.audit import missions
from punchlist.audit.log import LogCheck
from punchlist.checklist import replay as checklist_replay
from punchlist.checklist import repository as checklist_repository
from punchlist.conversations import message_queue
from punchlist.conversations import replay as conversation_replay
from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.lifecycle import QueueAction, TurnAction
from punchlist.errors import StoreDamaged, StoreError
from punchlist.kernel.events import Event
from punchlist.plan import condition_repository
from punchlist.plan import replay as plan_replay
from punchlist.plan.lifecycle import PlanAction
from punchlist.plan.repository import TurnTodoRepository
from punchlist.storage import event_log, maintenance
from punchlist.storage.event_log import find_anchor
from punchlist.storage.migrate import text_columns
from punchlist.storage.rechain import DATABASE_STREAM
from punchlist.storage.schema_version import SCHEMA_VERSION, unsupported_version
from punchlist.storage.store import Store, Transaction
from punchlist.tokens import replay as token_replay
from punchlist.tokens.lifecycle import TokenAction
from punchlist.toolcalls import replay as toolcalls_replay
from punchlist.toolcalls import repository as tool_records
from punchlist.toolcalls.lifecycle import ApprovalAction, CallAction
from punchlist.toolcalls.rule_store import RULE_ADDED

MAX_PROBLEMS: Final = 20
LARGE_ROWS: Final = 1_000_000
LARGE_BYTES: Final = 1_000_000_000

# The table that an event adds a row to.
_MAKES: Final[dict[tuple[str, str], str]] = {
    ("conversation", "start"): "conversations",
    ("conversation", TurnAction.BEGIN): "turns",
    ("conversation", "say"): "messages",
    ("queue", QueueAction.QUEUE): "queued_messages",
    ("queue", QueueAction.DELIVER): "messages",
    ("checklist", "rewrite"): "messages",
    ("checklist", "undo"): "messages",
    ("plan", PlanAction.CREATE): "turn_todos",
    ("toolcalls", CallAction.RECEIVE): "tool_calls",
    ("toolcalls", RULE_ADDED): "tool_rules",
    ("approval", ApprovalAction.ASK): "approvals",
    ("token", TokenAction.CREATE): "access_tokens",
    ("approval", ApprovalAction.ESCALATE): "messages",
}


@dataclass(frozen=True, slots=True)
class ListSize:
    table: str
    rows: int
    bytes: int


@dataclass(slots=True)
class CheckReport:
    revision: str
    sizes: list[ListSize] = field(default_factory=list)
    events: int = 0
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def healthy(self) -> bool:
        return not self.problems


def check(store: Store, revision: str, progress: Callable[[int], None] = lambda _: None) -> CheckReport:
    """Check everything in one snapshot; writers may continue."""
    report = CheckReport(revision)
    _run(report, "integrity", lambda: report.problems.extend(maintenance.integrity_problems(store)))
    if revision != SCHEMA_VERSION:
        # The rest of the check reads the tables of the current schema.
        report.problems.append(_schema_problem(store, revision))
    else:
        _run(report, "schema", lambda: report.problems.extend(maintenance.schema_problems(store)))
        _run(report, "events", lambda: _check_content(store, report, progress))
    del report.problems[MAX_PROBLEMS:]
    for size in report.sizes:
        if size.rows > LARGE_ROWS or size.bytes > LARGE_BYTES:
            report.warnings.append(f"{size.table} has grown to {size.rows:,} rows and {size.bytes:,} bytes.")
    return report


def _run(report: CheckReport, part: str, check_part: Callable[[], None]) -> None:
    """Damage can make any read fail in any way: a part of the check that fails is a problem, never an error."""
    try:
        check_part()
    except StoreError as error:
        report.problems.append(str(error))
    except Exception as error:
        report.problems.append(f"{part}: the check could not be finished ({type(error).__name__}: {error})")


def _check_content(store: Store, report: CheckReport, progress: Callable[[int], None]) -> None:
    with store.read(long=True) as tx:
        # PostgreSQL does not reuse the numbers of transactions that were rolled back.
        _check_events(tx, report, progress, gapless=store.database.one_writer)
        report.sizes = [
            ListSize(table, *maintenance.table_size(tx, table, columns))
            for table, columns in sorted(text_columns().items())
        ]


def _schema_problem(store: Store, revision: str) -> str:
    if problem := unsupported_version(store.database.name, revision):
        return f"schema: {problem}"
    return f"schema: version {revision} is older. Run `punchlist db upgrade` to upgrade it to {SCHEMA_VERSION}."


def _check_events(tx: Transaction, report: CheckReport, progress: Callable[[int], None], gapless: bool) -> None:
    made: Counter[str] = Counter()
    log = LogCheck(tx.chain, find_anchor(tx))
    for events in event_log.streams(tx):
        report.events += len(events)
        progress(report.events)
        broken = list(event_log.broken_links(events, tx.chain))
        report.problems += broken
        log.add(events)
        made.update(_rows_made(events))
        if not broken:
            kind, _, owner = events[0].stream.partition(":")
            report.problems += _compare(tx, kind, owner, events)
    report.problems += log.problems(tx, gapless=gapless)
    report.warnings += log.warnings()
    for table in (*dict.fromkeys(_MAKES.values()), "checklists", "todo_conditions", *missions.TABLES):
        rows = maintenance.count_rows(tx, table)
        if rows != made[table]:
            report.problems.append(f"{table}: has {rows} rows, its events made {made[table]}")


def _rows_made(events: list[Event]) -> Iterator[str]:
    """The tables that the events of a stream add rows to, one name per row."""
    kind = events[0].stream.partition(":")[0]
    if kind == "checklist":
        yield "checklists"
    yield from missions.rows_made(kind, events)
    for event in events:
        table = _MAKES.get((kind, event.action))
        if table:
            yield table
        if kind == "plan":
            yield from ["todo_conditions"] * plan_replay.count_new_conditions(event)


def _compare(tx: Transaction, kind: str, owner: str, events: list[Event]) -> list[str]:
    """Differences between the rows and the events of a stream."""
    try:
        return [*_COMPARISONS[kind](tx, owner, events), *_compare_messages(tx, events)]
    except StoreDamaged as error:
        return [str(error)]
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        return [f"{kind}:{owner}: its events cannot be replayed ({error!r})"]


def _compare_conversation(tx: Transaction, owner: str, events: list[Event]) -> Iterator[str]:
    replayed = conversation_replay.replay_conversation(events)
    if conversation_repository.find_conversation(tx, owner) != replayed.conversation:
        yield f"conversation:{owner}: it differs from its events"
    for turn in replayed.turns.values():
        if conversation_repository.find_turn(tx, turn.id) != turn:
            yield f"conversation:{owner}: turn {turn.id} differs from its events"


def _compare_queue(tx: Transaction, owner: str, events: list[Event]) -> Iterator[str]:
    replayed = conversation_replay.replay_queue(events)
    rows = conversation_repository.all_queued_messages(tx, owner)
    found = {row.id: {**message_queue.event_data(row), "status": row.status} for row in rows}
    for queued_id in replayed | found:
        if replayed.get(queued_id) != found.get(queued_id):
            yield f"queue:{owner}: message {queued_id} differs from its events"


def _compare_checklist(tx: Transaction, owner: str, events: list[Event]) -> Iterator[str]:
    if checklist_repository.find_checklist(tx, owner) != checklist_replay.replay_checklist(events):
        yield f"checklist:{owner}: the list differs from its events"


def _compare_plan(tx: Transaction, owner: str, events: list[Event]) -> Iterator[str]:
    replayed = plan_replay.replay_todos(owner, events)
    found = {todo.id: todo for todo in TurnTodoRepository(tx).find_by_turn(owner)}
    for todo_id in replayed | found:
        if replayed.get(todo_id) != found.get(todo_id):
            yield f"plan:{owner}: todo {todo_id} differs from its events"
    conditions_replayed = plan_replay.replay_conditions(owner, events)
    conditions_found = {condition.id: condition for condition in condition_repository.find_by_turn(tx, owner)}
    for condition_id in conditions_replayed | conditions_found:
        if conditions_replayed.get(condition_id) != conditions_found.get(condition_id):
            yield f"plan:{owner}: condition {condition_id} differs from its events"
    yield from missions.compare_claims(tx, owner, events)


def _compare_tool_calls(tx: Transaction, owner: str, events: list[Event]) -> Iterator[str]:
    replayed = toolcalls_replay.replay_calls(events)
    found = {call.id: call for call in tool_records.calls_of_conversation(tx, owner)}
    for call_id in replayed | found:
        if toolcalls_replay.call_differs(replayed.get(call_id), found.get(call_id)):
            yield f"toolcalls:{owner}: call {call_id} differs from its events"
    if sorted(toolcalls_replay.replay_rules(events)) != sorted(tool_records.rules_of_conversation(tx, owner)):
        yield f"toolcalls:{owner}: its rules differ from its events"


def _compare_approval(tx: Transaction, owner: str, events: list[Event]) -> Iterator[str]:
    if toolcalls_replay.approval_differs(events, tool_records.find_approval(tx, owner)):
        yield f"approval:{owner}: it differs from its events"


def _compare_messages(tx: Transaction, events: list[Event]) -> Iterator[str]:
    for event in events:
        replayed = event.payload().get("message")
        if isinstance(replayed, dict):
            message = conversation_repository.find_message(tx, replayed["id"])
            found = conversation_repository.fingerprint(message)["message"] if message is not None else {}
            # Events of earlier versions have neither who posted a message nor about which todo.
            if any(name not in found or found[name] != value for name, value in replayed.items()):
                yield f"{event.stream}: message {replayed['id']} differs from its event"


_COMPARISONS: Final[dict[str, Callable[[Transaction, str, list[Event]], Iterator[str]]]] = {
    DATABASE_STREAM: lambda _tx, _owner, _events: iter(()),
    "conversation": _compare_conversation,
    "queue": _compare_queue,
    "checklist": _compare_checklist,
    "plan": _compare_plan,
    "toolcalls": _compare_tool_calls,
    "approval": _compare_approval,
    "mission": missions.compare_mission,
    "run": missions.compare_run,
    "token": token_replay.compare,
}
