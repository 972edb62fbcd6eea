"""`punchlist sessions`: requests, replies and calls, listed, shown and exported (T15)."""

from __future__ import annotations

import json
import re
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.conftest import Cli, StoppedClock
from tests.contract.front import plan, todo
from tests.sessions import add_trace, start_session
from tests.surfaces.snapshots.compare import assert_same

from punchlist.agent.message_kinds import CONTINUATION, ENDING, REMINDER, TEXT
from punchlist.agent.transcript import to_stored
from punchlist.checklist.service import Checklists
from punchlist.conversations.message_queue import MessageQueue
from punchlist.conversations.model import MessageRole, NewMessage, Scope, StoredTurn
from punchlist.conversations.model import TurnScope as Here
from punchlist.conversations.repository import add_messages
from punchlist.conversations.service import Conversations
from punchlist.kernel.events import Actor, Role
from punchlist.models.model import CallReturn, Message, Reply, RequestedCall, Usage, UserText
from punchlist.plan.service import Plans
from punchlist.storage.open import open_store
from punchlist.storage.store import Store

SUPERVISOR = Actor(Role.SUPERVISOR, "supervisor")
ADA = Actor(Role.PERSON, "ada")
EVIL = "\x1b[2Jgone\u202e"


class Past:
    """A conversation that was had, through the services, as the loop leaves it."""

    def __init__(self, store: Store, clock: StoppedClock, session: str = "default") -> None:
        self.store, self.clock = store, clock
        self.conversations = Conversations(store)
        self.scope = Scope(session, SUPERVISOR)
        self.queue = MessageQueue(store)

    def begin(self, parent: str | None = None, agent: str = "supervisor") -> StoredTurn:
        self.clock.advance(seconds=1)
        scope = self.scope if parent is None else Scope(self.scope.conversation_id, Actor(Role.WORKER, agent))
        return self.conversations.begin_turn(scope, reason="test", parent=parent)

    def say(self, turn: StoredTurn | None, *messages: Message, kind: str = TEXT) -> None:
        for message in messages:
            self.note(turn, to_stored(message, kind))

    def note(self, turn: StoredTurn | None, line: NewMessage) -> None:
        role, kind, content = line
        self.conversations.add_message(
            self.scope, MessageRole(role), content, kind=kind, turn_id=turn.id if turn else None
        )


@pytest.fixture
def past(project: Path, clock: StoppedClock) -> Iterator[Past]:
    store = open_store(f"sqlite:///{project}/.punchlist/punchlist.db", clock=clock)
    yield Past(store, clock)
    store.close()


@pytest.fixture
def turn(past: Past) -> StoredTurn:
    """A request with a bit of everything, ended; its worker's turn inside."""
    start_session(past.store, past.scope, title="Release", metadata={"goal": "1.0"})
    turn = past.begin()
    here = Here(past.scope.conversation_id, SUPERVISOR, turn.id)
    past.say(turn, UserText("Do it.\nAll of it."))
    plan(Plans(past.store), here, "Look", "Write")
    calls = (
        RequestedCall("c1", "read_file", {"path": "ü.txt"}),
        RequestedCall("c2", "run_command", {"command": "false"}),
    )
    past.say(turn, Reply("I look first.", calls, usage=Usage(100, 10)))
    past.say(
        turn, CallReturn("c1", "read_file", "one\ntwo\nthree"), CallReturn("c2", "run_command", "exit 1", failed=True)
    )
    past.say(turn, Reply("Soon.", usage=Usage(200, 20)))
    past.say(turn, UserText("You have 2 open items.\n- Look\n- Write"), kind=CONTINUATION)
    past.say(turn, UserText("The list has not changed."), kind=REMINDER)
    past.say(
        turn, Reply("", (RequestedCall("c1", "delegate", {"type": "coder", "mission": "Write"}),), usage=Usage(300, 30))
    )
    worker = past.begin(turn.id, "coder")
    past.say(worker, UserText("Write"), Reply("Written.", usage=Usage(5, 6)))
    past.say(turn, CallReturn("c1", "delegate", "Written."))
    Checklists(past.store, past.conversations).rewrite(past.scope, [todo("Tell people")])
    add_trace(past.store, past.scope, turn.id, input="in", output="out")
    past.say(turn, Reply("All done.", (RequestedCall("c9", "read_file", {"path": "x"}),), usage=Usage(400, 40)))
    past.note(turn, NewMessage("system", ENDING, "Ended with something left:\n- Look"))
    past.clock.advance(minutes=1)
    past.conversations.end_turn(past.scope, reason="completed: nothing is open")
    past.queue.add(Scope("default", ADA), "And then the docs")
    return turn


def shown(text: str, past: Past) -> str:
    """With ids that are the same in every run."""
    for number, turn in enumerate(past.conversations.turns("default")[::-1], start=1):
        text = text.replace(turn.id, f"TURN-{number}")
    return text


# --- list -----------------------------------------------------------------------------------------------------


@pytest.mark.spec("T15")
def test_conversations_are_listed_newest_first_with_how_they_stand(
    punchlist: Cli, past: Past, turn: StoredTurn
) -> None:
    past.clock.advance(hours=1)
    other = Past(past.store, past.clock, "other")
    other.begin()
    past.clock.advance(hours=1)
    start_session(past.store, Scope("new", SUPERVISOR))
    assert punchlist("sessions", "list").stdout.splitlines() == [
        "* new  2026-02-21T11:01:03Z  0 turns, 0 messages  no turn yet",
        "  other  2026-02-21T10:01:03Z  1 turn, 0 messages  open",
        "  default  2026-02-21T09:00:00Z  2 turns, 14 messages  ended: completed: nothing is open  Release",
    ]
    assert len(punchlist("sessions", "list", "--limit", "1").stdout.splitlines()) == 1
    told = json.loads(punchlist("sessions", "list", "--json").stdout)
    assert [one["id"] for one in told] == ["new", "other", "default"]
    assert told[2]["lastTurn"]["endReason"] == "completed: nothing is open"
    assert (told[2]["turns"], told[2]["messages"], told[2]["metadata"]) == (2, 14, {"goal": "1.0"})


def test_no_conversation_is_said_and_none_is_made(punchlist: Cli) -> None:
    assert punchlist("sessions", "list").stdout == "No sessions yet.\n"
    for command in ("show", "export"):
        done = punchlist("sessions", command)
        assert done.returncode == 1
        assert "There is no session 'default'" in done.stderr
    assert punchlist("sessions").stdout == "No sessions yet.\n"


# --- show -----------------------------------------------------------------------------------------------------


@pytest.mark.spec("T15", "C4", "C15")
def test_a_conversation_is_shown_as_it_was_had(punchlist: Cli, past: Past, turn: StoredTurn) -> None:
    assert_same("conversation-show.txt", shown(punchlist("sessions", "show").stdout, past))
    by_id = punchlist("sessions", "show", "default", env={"PUNCHLIST_SESSION": "other"})
    assert by_id.stdout == punchlist("sessions", "show", "--session", "default").stdout


@pytest.mark.spec("T15", "C4")
def test_programs_see_how_often_a_turn_was_continued_and_what_it_took(punchlist: Cli, turn: StoredTurn) -> None:
    told = json.loads(punchlist("sessions", "show", "--json").stdout)
    first, worker = told["turns"]
    assert (first["iterations"], first["continuations"]) == (4, 1)
    assert first["usage"] == {"inputTokens": 1000, "outputTokens": 100, "cachedTokens": 0}
    assert (worker["parentTurnId"], worker["agent"], worker["iterations"]) == (turn.id, "coder", 1)
    assert len(told["messages"]) == 14


@pytest.mark.spec("T15", "C4", "C15")
def test_what_is_counted_is_what_the_run_said(punchlist: Cli, project: Path) -> None:
    planned = "- calls: [{tool: create_todo, arguments: {items: [{title: Look}]}}]\n"
    (project / "script.yaml").write_text(planned + "- {text: Soon., tokens: 9}\n" * 9)
    run = json.loads(punchlist("run", "Do it.", "--model", "rehearsal:script.yaml", "--json").stdout)
    # The last one is the attempt in a fresh context, before the turn ended as stalled.
    turn, attempt = json.loads(punchlist("sessions", "show", "--json").stdout)["turns"]
    assert attempt["parentTurnId"] == turn["id"]
    assert run["continuations"] > 1
    assert (run["iterations"], run["continuations"]) == (turn["iterations"], turn["continuations"])
    assert run["usage"] == {name: turn["usage"][name] + attempt["usage"][name] for name in run["usage"]}


@pytest.mark.spec("T15")
def test_only_some_turns_are_shown_when_asked_so(punchlist: Cli, past: Past, turn: StoredTurn) -> None:
    newer = past.begin()
    past.say(newer, UserText("Something else"))
    limited = punchlist("sessions", "show", "--limit", "1").stdout
    assert "Something else" in limited
    assert "Do it." not in limited
    one = punchlist("sessions", "show", "--turn", turn.id[-12:]).stdout
    assert "Do it." in one
    assert "Something else" not in one
    told = json.loads(punchlist("sessions", "show", "--turn", newer.id, "--json").stdout)
    assert [message["content"] for message in told["messages"]] == ["Something else"]


@pytest.mark.spec("T15")
def test_what_was_said_outside_of_any_turn_is_shown_in_its_place(punchlist: Cli, past: Past) -> None:
    first = past.begin()
    past.say(first, UserText("First"))
    past.conversations.end_turn(past.scope, reason="done")
    past.note(None, NewMessage("system", "escalation", "Nobody has answered"))
    past.say(past.begin(), UserText("Second"))
    text = punchlist("sessions", "show").stdout
    assert text.index("First") < text.index("escalation: Nobody has answered") < text.index("Second")


@pytest.mark.spec("T15")
def test_calls_that_a_model_numbers_alike_keep_their_own_results(punchlist: Cli, past: Past) -> None:
    turn = past.begin()
    call = Reply("", (RequestedCall("c1", "tool", {}),))
    past.say(turn, call, CallReturn("c1", "tool", "first result"), call, call, CallReturn("c1", "tool", "third result"))
    results = re.findall(r"[✓…] (.*)", punchlist("sessions", "show").stdout)
    assert results == ["first result", "no result yet", "third result"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["show", "nowhere"], "There is no session 'nowhere'"),
        (["show", "--turn", "nothing"], "Session 'default' has no turn 'nothing'"),
        (["show", "--turn", ""], "Session 'default' has no turn ''"),
        (["export", "nowhere"], "There is no session 'nowhere'"),
        (["end", "nowhere"], "There is no session 'nowhere'"),
    ],
)
def test_what_is_not_there_is_said_with_what_to_do(
    punchlist: Cli, turn: StoredTurn, words: Sequence[str], told: str
) -> None:
    done = punchlist("sessions", *words)
    assert done.returncode == 1
    assert told in done.stderr
    assert re.search("(lists|shows)", done.stderr)


@pytest.mark.spec("T15")
def test_nothing_that_was_said_acts_on_the_terminal(punchlist: Cli, past: Past) -> None:
    turn = past.begin()
    past.say(
        turn, UserText(EVIL), Reply(EVIL, (RequestedCall("c", EVIL, {EVIL: EVIL}), RequestedCall("d", EVIL, EVIL)))
    )
    past.say(turn, CallReturn("c", EVIL, EVIL))
    past.note(turn, NewMessage("assistant", "reply", EVIL))
    past.note(None, NewMessage("system", "text", EVIL))
    past.say(turn, UserText(EVIL), kind=CONTINUATION)
    formats = (["show"], ["show", "--json"], ["export"], ["export", "--format", "markdown"])
    for words in formats:
        done = punchlist("sessions", *words)
        assert (done.returncode, done.stderr) == (0, "")
        assert not {"\x1b", "\u202e"} & set(done.stdout)
        assert "gone" in done.stdout


# --- export ---------------------------------------------------------------------------------------------------


@pytest.mark.spec("T15")
def test_an_export_has_everything_and_is_the_same_every_time(punchlist: Cli, project: Path, turn: StoredTurn) -> None:
    (project / "notes.txt").write_text("x")
    punchlist("tools", "call", "read_file", '{"path": "notes.txt"}')
    first = punchlist("sessions", "export").stdout
    assert punchlist("sessions", "export", "default").stdout == first
    told = json.loads(first)
    assert list(told) == [
        "format",
        "conversation",
        "turns",
        "messages",
        "toolCalls",
        "traces",
        "queue",
        "checklist",
    ]
    assert told["format"] == 1
    assert told["conversation"]["title"] == "Release"
    assert [item["title"] for item in told["turns"][0]["todos"]] == ["Look", "Write"]
    assert [message["position"] for message in told["messages"]] == list(range(1, 15))
    assert told["messages"][1]["content"]["calls"][0]["arguments"] == {"path": "ü.txt"}
    assert told["messages"][2]["content"]["text"] == "one\ntwo\nthree"
    assert [(call["tool"], call["status"], call["result"]) for call in told["toolCalls"]] == [
        ("read_file", "success", "x")
    ]
    assert [(trace["name"], trace["turnId"], trace["output"]) for trace in told["traces"]] == [
        ("a-model", turn.id, "out")
    ]
    assert [one["content"] for one in told["queue"]] == ["And then the docs"]
    assert [item["content"] for item in told["checklist"]["items"]] == ["Tell people"]


@pytest.mark.spec("T15")
def test_a_conversation_can_be_read_as_markdown(punchlist: Cli, past: Past, turn: StoredTurn) -> None:
    assert_same("conversation-export.md", shown(punchlist("sessions", "export", "--format", "markdown").stdout, past))


@pytest.mark.spec("T15")
def test_what_was_said_cannot_pass_for_a_heading_of_the_document(punchlist: Cli, past: Past) -> None:
    turn = past.begin()
    forged = "# Forged\n```\n# Forged\n````\n# Forged"
    past.say(
        turn,
        UserText(forged),
        Reply(forged, (RequestedCall("c", "`# Forged`", forged),)),
        CallReturn("c", "tool", forged),
    )
    lines = punchlist("sessions", "export", "-f", "markdown").stdout.splitlines()
    outside = _outside_of_fences(lines)
    assert [line for line in outside if line.startswith("#")] == ["# Conversation `default`", "## Turn 1"]


def _outside_of_fences(lines: Sequence[str]) -> list[str]:
    fence, kept = "", []
    for line in lines:
        mark = re.match(r"`{3,}", line)
        if fence:
            fence = "" if mark and line.strip("`") == "" and len(line) >= len(fence) else fence
        elif mark:
            fence = mark.group()
        else:
            kept.append(line)
    return kept


@pytest.mark.spec("T15")
def test_a_file_that_is_there_is_replaced_only_when_told_to(punchlist: Cli, turn: StoredTurn, project: Path) -> None:
    target = project / "out.json"
    target.write_text("precious")
    done = punchlist("sessions", "export", "--output", "out.json")
    assert done.returncode == 1
    assert "--force" in done.stderr
    assert target.read_text() == "precious"
    done = punchlist("sessions", "export", "--output", "out.json", "--force")
    assert (done.returncode, done.stdout) == (0, "")
    assert target.read_text() == punchlist("sessions", "export").stdout
    assert sorted(path.name for path in project.iterdir() if "out" in path.name) == ["out.json"]


def test_an_export_that_cannot_be_written_leaves_nothing_behind(
    punchlist: Cli, turn: StoredTurn, project: Path
) -> None:
    done = punchlist("sessions", "export", "--output", "missing/out.json")
    assert done.returncode == 1
    assert "Cannot write missing/out.json" in done.stderr
    (project / "folder").mkdir()
    done = punchlist("sessions", "export", "--output", "folder", "--force")
    assert done.returncode == 1
    assert stat.S_ISDIR((project / "folder").stat().st_mode)
    assert not list(project.glob("*.partial"))


@pytest.mark.spec("T15")
def test_ten_thousand_messages_are_exported_quickly(punchlist: Cli, past: Past) -> None:
    turn = past.begin()
    with past.store.write() as tx:
        reply = to_stored(Reply("x" * 200, (RequestedCall("c", "tool", {"a": "b"}),)))
        result = to_stored(CallReturn("c", "tool", "y" * 200))
        add_messages(tx, "default", turn.id, [reply, result] * 5_000)
    for words in (["show"], ["export"], ["export", "--format", "markdown"], ["list"]):
        begun = time.monotonic()
        assert punchlist("sessions", *words).returncode == 0
        assert time.monotonic() - begun < 5
