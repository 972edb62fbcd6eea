"""`punchlist mission chat`: people read every chat of a mission, and write in it (M10)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli
from tests.contract.missions import BUILD, ONBOARDING, SLUG, Team, developer_experience

from punchlist.agent.transcript import to_stored
from punchlist.conversations.message_queue import MessageQueue
from punchlist.conversations.model import MessageRole, NewMessage, NoticeKind, Scope
from punchlist.conversations.service import Conversations
from punchlist.kernel.events import Actor, Role
from punchlist.kernel.processes import current_process
from punchlist.missions import chats
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.models.model import CallReturn, Reply, RequestedCall
from punchlist.runs.queue import RunQueue
from punchlist.runs.service import Runs
from punchlist.storage.open import open_store
from punchlist.storage.store import Store

pytestmark = pytest.mark.spec("M10")

TODOS = f"{SLUG}/{BUILD}/todos"
REHEARSAL = """\
replies: [Hm.]
agents:
  mission-lead: [{text: We are fine.}]
  pillar-owner: [{text: Builds are fine.}]
"""


@pytest.fixture
def store(project: Path) -> Iterator[Store]:
    opened = open_store(f"sqlite:///{project}/.punchlist/punchlist.db")
    yield opened
    opened.close()


@pytest.fixture
def team(store: Store) -> Team:
    return developer_experience(store)


def chat(punchlist: Cli, *arguments: str, **extra: Any) -> str:
    done = punchlist("mission", "chat", *arguments, **extra)
    assert done.returncode == 0, done.stderr
    return done.stdout


def chat_json(punchlist: Cli, *arguments: str, **extra: Any) -> Any:
    return json.loads(chat(punchlist, *arguments, "--json", **extra))


def work_in(team: Team) -> str:
    """A run that is at work in the first pillar's TODO chat; its id."""
    todo = team.todo_in(TodoStatus.IN_PROGRESS)
    (run,) = Runs(team.store).for_todo(todo.id)
    book = RunQueue(team.store, current_process())
    assert book.dispatch(run)
    book.begin(run.id)
    return run.id


def test_alone_it_says_what_there_is(punchlist: Cli) -> None:
    done = punchlist("mission", "chat")
    assert "list" in done.stdout + done.stderr
    assert "send" in done.stdout + done.stderr
    assert chat(punchlist, "list").startswith("No missions yet.")


def test_the_chats_of_a_mission_are_listed_with_what_waits_in_them(punchlist: Cli, team: Team) -> None:
    run = work_in(team)
    chat(punchlist, "send", f"{SLUG}/{ONBOARDING}", "How is it going?")
    with team.store.write() as tx:
        chats.post(tx, team.system, team.mission.conversation_id, NoticeKind.NOTE, "Look here.")
    told = chat_json(punchlist, "list", SLUG)
    assert [(one["chat"], one["channel"]) for one in told] == [
        (SLUG, "mission"),
        (f"{SLUG}/{BUILD}", "pillar"),
        (TODOS, "pillar-todo"),
        (f"{SLUG}/{ONBOARDING}", "pillar"),
        (f"{SLUG}/{ONBOARDING}/todos", "pillar-todo"),
    ]
    assert [one["waiting"] for one in told] == [0, 0, 0, 1, 0]
    assert [one["messages"] for one in told] == [1, 0, 0, 0, 0]
    assert [one["run"] and one["run"]["id"] for one in told] == [None, None, run, None, None]
    shown = chat(punchlist, "list")
    assert f"{TODOS}\n  pillar-todo  pillar-owner: running\n" in shown
    assert f"{SLUG}/{ONBOARDING}\n  pillar  1 waiting\n" in shown
    assert f"{SLUG}\n  mission  1 messages, the last 20" in shown


def test_what_was_said_is_shown_with_who_and_when(punchlist: Cli, team: Team) -> None:
    here = team.pillars[BUILD].todo_conversation_id
    conversations = Conversations(team.store)
    owner = Scope(here, Actor(Role.OWNER, "pillar-owner"))
    turn = conversations.begin_turn(owner, reason="a run", request=NewMessage("user", "todo_delegation", "Work on: A"))
    reply = to_stored(Reply("I look.\nFirst at this.", (RequestedCall("c1", "run_command", {"command": "make"}),)))
    conversations.add_message(owner, MessageRole(reply.role), reply.content, kind=reply.kind, turn_id=turn.id)
    result = to_stored(CallReturn("c1", "run_command", "exit 1\nno rule", failed=True))
    conversations.add_message(owner, MessageRole(result.role), result.content, kind=result.kind, turn_id=turn.id)
    conversations.add_message(
        owner, MessageRole.SYSTEM, "The list has not changed.\x1b[2J", kind="reminder", turn_id=turn.id
    )
    inner = Scope(here, Actor(Role.WORKER, "coder"))
    worker = conversations.begin_turn(
        inner, reason="delegated", parent=turn.id, request=NewMessage("user", "text", "Mend it")
    )
    assert worker.parent_turn_id == turn.id
    conversations.end_turn(owner, reason="completed: done")
    with team.store.write() as tx:
        chats.post(tx, team.system, here, NoticeKind.TODO_FEEDBACK, "Not yet.")
    lines = chat(punchlist, "show", TODOS).splitlines()
    assert lines[0] == f"{here}: [TODOs] Build Performance"
    told = [line.partition("Z  ")[2] or line for line in lines[1:]]
    assert told == [
        "",
        "todo delegation for pillar-owner",
        "  Work on: A",
        "",
        "pillar-owner",
        "  I look.",
        "  First at this.",
        '  → run_command {"command": "make"}',
        "  ✗ run_command exit 1 no rule",
        "  reminder: The list has not changed.\\x1b[2J",
        "",
        "for coder",
        "    Mend it",
        "",
        "todo feedback",
        "  Not yet.",
    ]
    whole = chat_json(punchlist, "show", here)
    assert whole["conversation"]["id"] == here
    assert [(one["kind"], one["agent"]) for one in whole["messages"]][:2] == [
        ("todo_delegation", "pillar-owner"),
        ("reply", "pillar-owner"),
    ]
    page = chat_json(punchlist, "show", TODOS, "--last", "1")
    [last] = page["messages"]
    assert (page["earlier"], page["later"], page["requests"], page["runs"]) == (True, False, [], [])
    near = chat_json(punchlist, "show", TODOS, "--last", "2", "--before", str(last["position"]))
    assert [one["position"] for one in near["messages"]] == [last["position"] - 2, last["position"] - 1]
    text = chat(punchlist, "show", TODOS, "--last", "1", "--after", "1")
    assert "Earlier messages: --before 2" in text
    assert "Later messages: --after 2" in text
    assert (last["content"], last["agent"]) == ("Not yet.", None)
    assert max(map(len, chat(punchlist, "show", TODOS, env={"COLUMNS": "40"}).splitlines()[6:])) <= 60


def test_a_message_waits_until_a_worker_answers_it(punchlist: Cli, team: Team, project: Path) -> None:
    (project / "rehearsal.yaml").write_text(REHEARSAL)
    assert "A worker delivers it: punchlist worker" in chat(punchlist, "send", SLUG, "How are we?")
    chat(punchlist, "send", f"{SLUG}/{BUILD}", "-", input="And the builds?\n")
    assert "person:" in chat(punchlist, "show", SLUG)
    assert "waits for delivery\n  How are we?" in chat(punchlist, "show", SLUG)
    done = punchlist("worker", "--until-idle", "--quiet", "--model", "rehearsal:rehearsal.yaml")
    assert done.returncode == 0, done.stderr
    for where, asked, said, agent in (
        (SLUG, "How are we?", "We are fine.", "mission-lead"),
        (f"{SLUG}/{BUILD}", "And the builds?", "Builds are fine.", "pillar-owner"),
    ):
        told = chat_json(punchlist, "show", where)
        assert told["waiting"] == []
        assert [one["content"] for one in told["messages"] if one["kind"] == "text"] == [asked]
        assert f"{agent}\n  {said}" in chat(punchlist, "show", where)
    assert team.mission.status == "active"


def test_while_an_agent_is_at_work_what_is_said_waits(punchlist: Cli, team: Team) -> None:
    run = work_in(team)
    told = chat(punchlist, "send", TODOS, "Mind the cache.")
    assert f"pillar-owner is working there (run {run[-8:]}, running) and gets it afterwards." in told
    assert f"punchlist mission runs redirect {run[-8:]} TEXT" in told
    [waiting] = MessageQueue(team.store).pending(team.pillars[BUILD].todo_conversation_id)
    assert (waiting.content, waiting.status) == ("Mind the cache.", "queued")
    assert chat_json(punchlist, "send", TODOS, "And the disk.")["run"]["id"] == run


def test_any_session_is_a_chat_too(punchlist: Cli) -> None:
    punchlist("todos", "add", "A")
    told = chat(punchlist, "send", "default", "Hello")
    assert "The next `punchlist run --session default` delivers it" in told
    assert "waits for delivery\n  Hello" in chat(punchlist, "show", "default")


@pytest.mark.usefixtures("team")
def test_a_chat_that_is_not_there_is_told(punchlist: Cli) -> None:
    for named, told in (
        (f"{SLUG}/nowhere", f"Mission '{SLUG}' has no chat 'nowhere'. Its chats: {SLUG}, {SLUG}/{BUILD}, {TODOS}"),
        ("nowhere", "There is no session 'nowhere'"),
        ("nowhere/builds", "There is no session 'nowhere/builds'"),
    ):
        for arguments in (["show", named], ["send", named, "Hello"]):
            done = punchlist("mission", "chat", *arguments, "--json")
            assert done.returncode == 1
            assert told in json.loads(done.stdout)["error"]["message"]
    done = punchlist("mission", "chat", "send", SLUG, " ")
    assert (done.returncode, done.stderr) == (1, "punchlist: content: must not be empty\n")
