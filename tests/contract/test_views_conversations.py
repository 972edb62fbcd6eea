"""The list of conversations and the status line (C15, T15)."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.contract.rehearsing import Rehearse, plans, says

from punchlist.agent.live_output import LiveOutput
from punchlist.conversations.model import MessageRole, Scope
from punchlist.conversations.service import Conversations
from punchlist.kernel.events import Actor, Role
from punchlist.storage.store import Store
from punchlist.toolcalls.policy import Mode
from punchlist.views.conversations import read_conversations, read_status

PERSON = Actor(Role.PERSON, "me")


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
    assert (line.status.model, line.status.mode) == ("rehearsal", "auto-edit")
    assert line.status.continuations == 3
    assert line.status.continuation_limit == 10
    assert line.status.input_tokens == result.usage.input_tokens
    assert line.status.context_window is not None
    assert 0 < line.status.context_tokens < line.status.context_window
    assert (line.state, line.items.open, line.approvals, line.queued) == ("ended", 1, 0, 0)
