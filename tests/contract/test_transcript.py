"""The transcript of a conversation, the list of conversations, and the status line (W9, C15, T15)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contract.front import todo
from tests.contract.rehearsing import Rehearse, calls, claims, plans, says

from punchlist.agent.live_output import LiveOutput
from punchlist.checklist.service import Checklists
from punchlist.conversations.message_queue import MessageQueue
from punchlist.conversations.model import MessageRole, NewMessage, Scope
from punchlist.conversations.repository import add_messages
from punchlist.conversations.service import Conversations
from punchlist.errors import InvalidInput, NotFound
from punchlist.kernel.events import Actor, Role
from punchlist.storage.store import Store
from punchlist.toolcalls.policy import Mode
from punchlist.views.conversations import read_conversations, read_status
from punchlist.views.transcript import read_transcript
from punchlist.views.transcript_entries import AgentText, CallCard, ListUpdate, PersonMessage, QueuedText, QuietLine

PERSON = Actor(Role.PERSON, "me")
EDIT = ("edit_file", {"path": "a.txt", "old": "one", "new": "two"})


@pytest.mark.spec("T15", "W9")
def test_a_transcript_has_what_was_said_and_done(
    rehearse: Rehearse, store: Store, agent: Scope, tmp_path: Path
) -> None:
    (tmp_path / "workspace" / "a.txt").write_text("one\n")
    agents = rehearse(
        plans("Look", "Change it"),
        calls(("read_file", {"path": "missing.txt"}), EDIT, ("list_directory", {}), text="I look and edit."),
        calls(claims(0), claims(1)),
        says("All *done*."),
    )
    result = agents.run("Change one to two.")
    MessageQueue(store).add(Scope("s", PERSON), "And then?")
    page = read_transcript(store, "s")
    kinds = [entry.type for entry in page.entries]
    assert kinds == ["person", "list", "agent", *["call"] * 3, "list", "list", "agent", "quiet", "queued"]
    person, created, told, failed, edited, _, done, *_, answer, end, queued = page.entries
    assert isinstance(person, PersonMessage)
    assert person.text == "Change one to two."
    assert isinstance(created, ListUpdate)
    assert [(item.title, item.status) for item in created.items] == [("Look", "pending"), ("Change it", "pending")]
    assert isinstance(done, ListUpdate)
    assert [(item.title, item.status) for item in done.items] == [("Look", "completed")]
    assert isinstance(told, AgentText)
    assert (told.text, told.turn_id, told.worker) == ("I look and edit.", result.turn_id, False)
    assert isinstance(failed, CallCard)
    assert (failed.tool, failed.status, failed.arguments) == ("read_file", "error", {"path": "missing.txt"})
    assert "missing.txt" in failed.result
    assert isinstance(edited, CallCard)
    assert edited.status == "success"
    assert edited.diff == "--- a/a.txt\n+++ b/a.txt\n-one\n+two"
    assert edited.seconds is not None
    assert isinstance(answer, AgentText)
    assert isinstance(end, QuietLine)
    assert (end.kind, end.text.partition(":")[0]) == ("turn_ended", "completed")
    assert isinstance(queued, QueuedText)
    shown = json.loads(json.dumps(page.as_json()))
    assert [entry["type"] for entry in shown["entries"]][:5] == ["person", "list", "agent", "call", "call"]
    assert shown["before"] is None


@pytest.mark.spec("T15")
def test_pages_join_without_gaps_and_never_repeat_the_end_of_a_turn(
    rehearse: Rehearse, store: Store, agent: Scope
) -> None:
    agents = rehearse(*[says(f"Answer {number}.") for number in range(5)])
    for number in range(5):
        agents.run(f"Question {number}?")
    whole = read_transcript(store, "s").entries
    assert len(whole) == 15
    found: list[object] = []
    before = None
    while True:
        page = read_transcript(store, "s", before=before, limit=3)
        found[:0] = page.entries
        if page.before is None:
            break
        before = page.before
    assert found == list(whole)
    forward = list(read_transcript(store, "s", after=0, limit=4).entries)
    assert forward == list(whole[: len(forward)])
    newest = read_transcript(store, "s")
    assert read_transcript(store, "s", after=newest.after).entries == []
    with pytest.raises(InvalidInput):
        read_transcript(store, "s", before=1, after=1)
    with pytest.raises(NotFound):
        read_transcript(store, "missing")


@pytest.mark.spec("W9")
def test_changes_of_the_checklist_are_lines_of_the_conversation(
    store: Store, checklists: Checklists, agent: Scope
) -> None:
    checklists.rewrite(agent, [todo("Look", "completed"), todo("Change it")])
    [line] = [entry for entry in read_transcript(store, "s").entries if isinstance(entry, ListUpdate)]
    assert [(item.title, item.status) for item in line.items] == [("Look", "completed"), ("Change it", "pending")]
    assert line.text == "Todo list updated:"


@pytest.mark.spec("T12")
def test_the_work_of_a_worker_is_marked(rehearse: Rehearse, store: Store) -> None:
    agents = rehearse(
        calls(("delegate", {"type": "researcher", "mission": "Find it."})),
        says("Found."),
        researcher=[says("It is here.")],
    )
    agents.run("Search.")
    entries = read_transcript(store, "s").entries
    workers = [entry for entry in entries if entry.worker]
    assert [type(entry).__name__ for entry in workers] == ["QuietLine", "AgentText"]
    assert [entry.agent for entry in workers] == ["researcher", "researcher"]
    assert [entry.kind for entry in entries if isinstance(entry, QuietLine)] == ["task", "turn_ended"]


@pytest.mark.spec("C2", "C13")
def test_continuations_and_what_a_turn_left_open_are_quiet_lines(rehearse: Rehearse, store: Store) -> None:
    agents = rehearse(plans("Never done"), *[says("I stop here.") for _ in range(20)])
    agents.run("Do it.")
    quiet = [entry for entry in read_transcript(store, "s").entries if isinstance(entry, QuietLine)]
    assert {entry.kind for entry in quiet} >= {"continuation", "turn_ended"}
    assert quiet[-1].text.startswith("stalled")
    assert "Never done" in quiet[-1].detail


@pytest.mark.spec("S5")
def test_a_call_that_waits_says_so_and_shows_its_diff(rehearse: Rehearse, store: Store, tmp_path: Path) -> None:
    (tmp_path / "workspace" / "a.txt").write_text("zero\none\n")
    rehearse(calls(EDIT)).in_mode(Mode.DEFAULT).run("Edit.")
    [call] = [entry for entry in read_transcript(store, "s").entries if isinstance(entry, CallCard)]
    assert call.status == "awaiting_approval"
    assert call.approval is not None
    assert call.approval.waits
    assert call.diff is not None
    assert "@@" in call.diff
    assert " zero" in call.diff.splitlines()


@pytest.mark.spec("T15")
def test_a_damaged_message_is_shown_as_text(store: Store, conversations: Conversations, agent: Scope) -> None:
    conversations.add_message(agent, MessageRole.ASSISTANT, "{not json", kind="reply")
    [entry] = read_transcript(store, "s").entries
    assert isinstance(entry, AgentText)
    assert entry.text == "{not json"


@pytest.mark.spec("T15")
def test_conversations_are_listed_by_their_last_activity(
    store: Store, conversations: Conversations, rehearse: Rehearse
) -> None:
    for name in ("a", "b", "c"):
        conversations.add_message(Scope(name, PERSON), MessageRole.USER, f"Request of {name}\nwith more")
    rehearse(plans("Look"), says("Stop."), *[says("Stop.")] * 10).run("The session.")
    conversations.add_message(Scope("a", PERSON), MessageRole.USER, "Another.")
    page = read_conversations(store, limit=3)
    assert [line.id for line in page.conversations] == ["a", "s", "c"]
    assert page.conversations[0].title.startswith("Request of a")
    session = page.conversations[1]
    assert (session.state, session.items.total, session.items.open) == ("ended", 1, 1)
    rest = read_conversations(store, limit=3, cursor=page.cursor)
    assert [line.id for line in rest.conversations] == ["b"]
    assert rest.cursor is None
    assert json.loads(json.dumps(page.as_json()))["items"][1]["items"]["open"] == 1


@pytest.mark.spec("C15")
def test_the_status_line_has_model_mode_continuations_and_tokens(store: Store, rehearse: Rehearse) -> None:
    agents, live = rehearse(plans("Look"), *[says("Stop.", tokens=100)] * 10).in_mode(Mode.AUTO_EDIT), LiveOutput(store)
    agents.runtime = replace(agents.runtime, on_event=live.listener("s"))
    result = agents.run("The session.")
    live.close()
    line = read_status(store, "s")
    assert line.status is not None
    assert line.auto_execution
    assert (line.status.model, line.status.mode) == ("rehearsal", "auto-edit")
    assert line.status.continuations == 3
    assert line.status.continuation_limit == 10
    assert line.status.input_tokens == result.usage.input_tokens
    assert line.context_share is not None
    assert 0 < line.context_share < 1
    assert (line.state, line.items.open, line.approvals, line.queued) == ("ended", 1, 0, 0)
    assert json.loads(json.dumps(line.as_json()))["status"]["mode"] == "auto-edit"


@pytest.mark.spec("C16")
def test_a_page_of_a_long_conversation_reads_only_a_page(
    store: Store, conversations: Conversations, agent: Scope
) -> None:
    conversations.open_turn(agent)
    with store.write() as tx:
        add_messages(tx, "s", None, [NewMessage("user", "text", f"Message {number}") for number in range(3_000)])
    page = read_transcript(store, "s", limit=10)
    assert [entry.position for entry in page.entries] == list(range(2_991, 3_001))
    middle = read_transcript(store, "s", before=1_500, limit=10)
    assert middle.later
    assert [entry.position for entry in middle.entries] == list(range(1_490, 1_500))
