"""`punchlist queue`: what a person leaves for an agent that is at work."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import Cli
from tests.faults.processes import Program, eventually

from punchlist.conversations.message_queue import MessageQueue
from punchlist.conversations.model import DeliveredMessage, Scope
from punchlist.kernel.events import Actor, Role
from punchlist.storage.open import open_store
from punchlist.trust import Trust


@pytest.fixture
def queue(project: Path, home: Path) -> Iterator[MessageQueue]:
    """The queue of the project's database, as the loop has it."""
    trust = Trust.of_user({"HOME": str(home)})
    store = open_store(f"sqlite:///{project}/.punchlist/punchlist.db", trust=trust)
    yield MessageQueue(store)
    store.close()


def deliver(queue: MessageQueue) -> DeliveredMessage | None:
    return queue.deliver(Scope("default", Actor(Role.SUPERVISOR, "test")))


@pytest.mark.spec("S10")
def test_what_was_queued_is_listed_in_its_order(punchlist: Cli) -> None:
    assert re.fullmatch(r"Queued [0-9a-f]{8}\.\n", punchlist("queue", "add", "First").stdout)
    assert re.fullmatch(r"Queued [0-9a-f]{8}, after 1 more\.\n", punchlist("queue", "add", "Second").stdout)
    for words in (["queue"], ["queue", "list"]):
        first, second = punchlist(*words).stdout.splitlines()
        assert re.fullmatch(r"  1  [0-9a-f]{8}  \S+Z  First", first)
        assert re.fullmatch(r"  2  [0-9a-f]{8}  \S+Z  Second", second)
    told = json.loads(punchlist("queue", "--json").stdout)
    assert [(one["content"], one["status"]) for one in told] == [("First", "queued"), ("Second", "queued")]


@pytest.mark.spec("S10")
def test_a_message_may_come_from_standard_input(punchlist: Cli) -> None:
    made = json.loads(punchlist("queue", "add", "-", "--json", input="two\nlines\n").stdout)
    assert made["content"] == "two\nlines"
    changed = punchlist("queue", "edit", made["id"], "-", "--json", input="three\nmore\nlines\n").stdout
    assert json.loads(changed)["content"] == "three\nmore\nlines"


@pytest.mark.spec("S10")
def test_a_message_is_changed_and_removed_by_the_end_of_its_id(punchlist: Cli) -> None:
    first, second = (json.loads(punchlist("queue", "add", said, "--json").stdout) for said in ("First", "Second"))
    end = first["id"][-8:]
    assert punchlist("queue", "edit", end, "First, but better").stdout == f"Changed {end}.\n"
    assert punchlist("queue", "remove", second["id"][-8:]).stdout == f"Removed {second['id'][-8:]}.\n"
    assert [one["content"] for one in json.loads(punchlist("queue", "--json").stdout)] == ["First, but better"]


@pytest.mark.spec("S10")
def test_what_was_delivered_waits_no_more_and_cannot_be_changed(punchlist: Cli, queue: MessageQueue) -> None:
    made = json.loads(punchlist("queue", "add", "Hello", "--json").stdout)
    delivered = deliver(queue)
    assert delivered
    assert delivered.queued.content == "Hello"
    assert punchlist("queue").stdout == "Nothing is queued.\n"
    done = punchlist("queue", "edit", made["id"], "Too late")
    assert done.returncode == 1
    assert "that is delivered" in done.stderr
    assert punchlist("db", "check").returncode == 0


@pytest.mark.spec("S10")
def test_each_session_has_a_queue_of_its_own(punchlist: Cli) -> None:
    made = json.loads(punchlist("queue", "add", "Elsewhere", "--session", "other", "--json").stdout)
    assert punchlist("queue", "--session", "default").stdout == "Nothing is queued.\n"
    assert punchlist("queue", "remove", made["id"], "--session", "default").returncode == 1
    assert "Elsewhere" in punchlist("queue", "--session", "other").stdout
    assert "Elsewhere" in punchlist("queue", "list", "--session", "other").stdout


def test_looking_at_a_queue_makes_no_session(punchlist: Cli) -> None:
    assert punchlist("queue").stdout == "Nothing is queued.\n"
    assert punchlist("queue", "--json").stdout == "[]\n"
    assert punchlist("sessions").stdout == "No sessions yet.\n"


@pytest.mark.parametrize("words", [["add", " "], ["add", "-"], ["edit", "x", ""]])
def test_an_empty_message_is_a_wrong_command_line(punchlist: Cli, words: list[str]) -> None:
    done = punchlist("queue", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is empty" in done.stderr


@pytest.mark.parametrize("command", [["edit", "nothing", "text"], ["remove", "nothing"]])
def test_a_message_that_is_not_there_is_said_with_what_to_do(punchlist: Cli, command: list[str]) -> None:
    done = punchlist("queue", *command, "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["code"] == "not_found"
    assert "`punchlist queue` lists the queued messages" in done.stderr


@pytest.mark.spec("S10")
def test_a_message_cannot_act_on_the_terminal_that_lists_it(punchlist: Cli) -> None:
    punchlist("queue", "add", "evil \x1b[2J\u202e text " + "x" * 500)
    (line,) = punchlist("queue").stdout.splitlines()
    assert "\x1b" not in line
    assert "\u202e" not in line
    assert len(line) <= 80


# --- with an agent at work ------------------------------------------------------------------------------------

AT_WORK = """\
- calls: [{tool: run_command, arguments: {command: "touch begun; until [ -e enough ]; do sleep 0.01; done"}}]
- That was the first.
- That was the second.
- That was the third.
"""


@pytest.fixture
def agent(project: Path, environment: dict[str, str]) -> Iterator[Program]:
    """An agent that works on a command until there is a file called `enough`."""
    (project / "script.yaml").write_text(AT_WORK)
    words = ("run", "Begin.", "--model", "rehearsal:script.yaml", "--mode", "yolo", "--json")
    with Program(project, environment, *words) as program:
        eventually((project / "begun").exists, "the agent begins")
        yield program
        (project / "enough").touch()


def said(punchlist: Cli) -> list[tuple[str, str]]:
    """What was asked in the session's turns and how each of them was answered."""
    told = json.loads(punchlist("sessions", "export").stdout)["messages"]
    asked = [one["content"] for one in told if (one["role"], one["kind"]) == ("user", "text")]
    answers = [one["content"]["text"] for one in told if one["kind"] == "reply" and one["content"]["text"]]
    return list(zip(asked, answers, strict=True))


@pytest.mark.spec("S10")
def test_what_is_said_while_the_agent_works_is_delivered_in_order_when_it_is_idle(
    punchlist: Cli, project: Path, agent: Program
) -> None:
    for text in ("And this.", "And that."):
        punchlist("queue", "add", text)
    assert len(json.loads(punchlist("queue", "--json").stdout)) == 2
    (project / "enough").touch()
    assert agent.end().code == 0
    assert said(punchlist) == [
        ("Begin.", "That was the first."),
        ("And this.", "That was the second."),
        ("And that.", "That was the third."),
    ]
    assert punchlist("queue").stdout == "Nothing is queued.\n"
    assert punchlist("db", "check").returncode == 0


@pytest.mark.spec("S10")
def test_what_waits_outlives_the_agent_and_is_delivered_by_the_next(
    punchlist: Cli, project: Path, agent: Program
) -> None:
    punchlist("queue", "add", "And this.")
    agent.process.kill()
    agent.process.wait()
    assert "And this." in punchlist("queue").stdout
    (project / "again.yaml").write_text("- Begun anew.\n- And done.\n")
    assert punchlist("run", "--continue", "Once more.", "--model", "rehearsal:again.yaml").returncode == 0
    assert punchlist("queue").stdout == "Nothing is queued.\n"
    assert "And this." in punchlist("sessions", "show", "--limit", "1").stdout
    assert punchlist("db", "check").returncode == 0
