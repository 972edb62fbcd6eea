"""Turns in processes of their own: started, interrupted from elsewhere, and not harmed by the end of the one that
started them (C14, S7, S10)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.processes import eventually

from punchlist.agent.turn_process import interrupt_turn, start_turn
from punchlist.app import Services
from punchlist.config import load
from punchlist.conversations.interrupts import REACTION_TIME
from punchlist.conversations.message_queue import MessageQueue
from punchlist.conversations.model import Scope, StoredTurn
from punchlist.errors import Conflict, NotFound, PunchlistError
from punchlist.kernel.events import Actor, Role
from punchlist.kernel.processes import is_running
from punchlist.toolcalls.approvals import ApprovalAnswer, ApprovalOutcome
from punchlist.views.live_text import LiveText, LiveTextFeed

ME = Actor(Role.PERSON, "me")
QUICK = "- Done.\n"
THINKS = "- {text: Done., delay: 60}\n"
COMMAND = "- calls: [{tool: run_command, arguments: {command: 'touch began; sleep 60'}}]\n- Done.\n"
ASKS = "- calls: [{tool: run_command, arguments: {command: touch made}}]\n- Done.\n"
STREAMS = f"""
- text: "{"word " * 30}"
  stream: 0.5
  calls: [{{tool: run_command, arguments: {{command: "echo printed; sleep 60"}}}}]
"""
STARTER = """
import sys, time
from pathlib import Path
from punchlist.agent.turn_process import start_turn
from punchlist.app import Services
from punchlist.config import load
print(start_turn(Services(load()), "s", "Go on.", model="rehearsal:script.yaml").turn.id, flush=True)
time.sleep(60)
"""


@pytest.fixture
def services(
    project: Path, database: str, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Services]:
    """Of a person in the project folder, whose shell has the variables of `environment`."""
    for name in set(os.environ) - set(environment):
        if not name.startswith("PYTEST"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PUNCHLIST_DATABASE_URL", database)
    monkeypatch.chdir(project)
    built = Services(load())
    yield built
    built.close()


def script(project: Path, text: str) -> str:
    (project / "script.yaml").write_text(text)
    return "rehearsal:script.yaml"


def ended(services: Services, turn_id: str) -> StoredTurn:
    eventually(lambda: not services.conversations.turn(turn_id).open, "the turn ends")
    return services.conversations.turn(turn_id)


def interrupted(services: Services, turn_id: str) -> tuple[StoredTurn, float]:
    """The turn after an interruption, and how long it took."""
    before = time.monotonic()
    assert interrupt_turn(services, "s", actor=ME) is not None
    return ended(services, turn_id), time.monotonic() - before


@pytest.mark.spec("C14", "T15")
def test_a_turn_runs_to_its_end_in_a_process_of_its_own(services: Services, project: Path) -> None:
    goal = "Look.\n" + "Very long. " * 20_000
    started = start_turn(services, None, goal, model=script(project, QUICK))
    turn = ended(services, started.turn.id)
    assert turn.end_reason is not None
    assert turn.end_reason.startswith("completed")
    assert services.conversations.turn_messages(turn.id)[0].content == goal.strip()
    eventually(lambda: '"reason": "completed"' in started.log.read_text(), "the result is in the log")
    again = start_turn(services, turn.conversation_id, "More.", model="rehearsal:script.yaml")
    assert again.turn.conversation_id == turn.conversation_id
    ended(services, again.turn.id)


@pytest.mark.spec("C14")
def test_an_interruption_ends_the_model_s_stream_within_a_second(services: Services, project: Path) -> None:
    started = start_turn(services, "s", "Think.", model=script(project, THINKS))
    with pytest.raises(Conflict, match="works on turn"):
        start_turn(services, "s", "Another.", model="rehearsal:script.yaml")
    turn, took = interrupted(services, started.turn.id)
    assert turn.end_reason == "cancelled: a person interrupted it"
    assert took < 1.0
    eventually(lambda: is_running(started.turn.owner or "") is False, "the process ends")
    assert interrupt_turn(services, "s", actor=ME) is None


@pytest.mark.spec("C14", "S7")
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_an_interruption_ends_a_running_command(services: Services, project: Path) -> None:
    started = start_turn(services, "s", "Sleep.", model=script(project, COMMAND), mode="yolo")
    eventually((project / "began").exists, "the command runs")
    turn, took = interrupted(services, started.turn.id)
    assert (turn.end_reason or "").startswith("cancelled")
    assert took < 1.5
    [call] = [row for row in services.conversations.turn_messages(turn.id) if row.role == "tool"]
    assert "a person interrupted it" in call.content


@pytest.mark.spec("C14", "S5")
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_approvals_are_answered_through_the_database(services: Services, project: Path) -> None:
    started = start_turn(services, "s", "Touch.", model=script(project, ASKS))
    eventually(lambda: bool(services.approvals.waiting("s")), "the call asks")
    [asked] = services.approvals.waiting("s")
    services.approvals.answer(asked.call_id, ApprovalAnswer(ApprovalOutcome.PROCEED_ONCE, ME))
    assert (ended(services, started.turn.id).end_reason or "").startswith("completed")
    assert (project / "made").exists()


@pytest.mark.spec("C14")
def test_a_turn_whose_process_was_killed_is_ended_at_once_or_resumed(services: Services, project: Path) -> None:
    started = start_turn(services, "s", "Touch.", model=script(project, ASKS))
    eventually(lambda: bool(services.approvals.waiting("s")), "the call asks")
    os.kill(started.pid, signal.SIGKILL)
    eventually(lambda: is_running(started.turn.owner or "") is False, "the process is gone")
    resumed = start_turn(services, "s", resume=True, model="rehearsal:script.yaml")
    assert resumed.turn.id == started.turn.id
    assert resumed.pid != started.pid
    os.kill(resumed.pid, signal.SIGKILL)
    eventually(lambda: is_running(resumed.turn.owner or "") is False, "the process is gone")
    turn = interrupt_turn(services, "s", actor=ME)
    assert turn is not None
    assert turn.end_reason == "cancelled: a person interrupted it"
    assert services.approvals.waiting("s") == []


@pytest.mark.spec("C14")
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_an_owner_that_does_not_react_loses_its_turn_to_a_second_interruption(
    services: Services, project: Path
) -> None:
    started = start_turn(services, "s", "Think.", model=script(project, THINKS))
    os.kill(started.pid, signal.SIGSTOP)
    try:
        assert interrupt_turn(services, "s", actor=ME) is not None
        assert services.conversations.turn(started.turn.id).open
        late = services.store.clock() + REACTION_TIME
        services.store.clock = lambda: late
        turn = interrupt_turn(services, "s", actor=ME)
        assert turn is not None
        assert not turn.open
    finally:
        os.kill(started.pid, signal.SIGCONT)
    eventually(lambda: is_running(started.turn.owner or "") is False, "the process notices and ends")


@pytest.mark.spec("C14")
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_killing_the_process_that_started_a_turn_does_not_harm_it(services: Services, project: Path) -> None:
    script(project, "- {text: '', calls: [{tool: list_directory, arguments: {path: .}}], delay: 0.5}\n- Done.\n")
    with subprocess.Popen([sys.executable, "-c", STARTER], stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        turn_id = starter.stdout.readline().strip()
        starter.kill()
    assert services.conversations.turn(turn_id).open
    assert (ended(services, turn_id).end_reason or "").startswith("completed")


@pytest.mark.spec("S8", "C14")
def test_text_and_output_are_seen_elsewhere_while_they_appear(services: Services, project: Path) -> None:
    model = script(project, STREAMS)
    with services.live.subscribe(conversation_id="s") as subscription:
        started = start_turn(services, "s", "Tell me.", model=model, mode="yolo")
        texts: dict[str | None, str] = {None: ""}

        def heard(wanted: str) -> bool:
            for item in subscription.read(timeout=0.1):
                if isinstance(item, LiveText):
                    texts[item.call_id] = texts.get(item.call_id, "") + item.text
            return any(wanted in text for text in texts.values())

        eventually(lambda: heard("word"), "the first word arrives")
        assert services.conversations.turn_messages(started.turn.id)[1:] == []
        eventually(lambda: heard("printed"), "the output arrives")
        # The last piece may be gone when it is read: the stored reply has replaced it.
        assert 25 <= texts[None].count("word") <= 30
        assert interrupt_turn(services, "s", actor=ME) is not None
        ended(services, started.turn.id)
    assert LiveTextFeed(services.store).poll() == []


@pytest.mark.spec("S10")
def test_a_queued_message_is_delivered_by_a_process(services: Services, project: Path) -> None:
    MessageQueue(services.store).add(Scope("s", ME), "From the queue.")
    started = start_turn(services, "s", queued=True, model=script(project, QUICK))
    assert ended(services, started.turn.id).end_reason is not None
    assert services.conversations.turn_messages(started.turn.id)[0].content == "From the queue."
    with pytest.raises(NotFound, match="no message to deliver"):
        start_turn(services, "s", queued=True, model="rehearsal:script.yaml")


@pytest.mark.spec("C14")
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_the_error_of_the_process_is_told(services: Services) -> None:
    for model, told in ((None, "No model"), ("rehearsal:missing.yaml", "missing.yaml")):
        with pytest.raises(PunchlistError, match=told):
            start_turn(services, "s", "Look.", model=model)
    with pytest.raises(PunchlistError, match="Invalid value for '--mode'"):
        start_turn(services, "s", "Look.", mode="fast")
