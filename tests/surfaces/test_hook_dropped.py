"""Items that an agent drops from its list keep it going until they are sent again or cancelled (W3, X2)."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from tests.conftest import Cli
from tests.surfaces.conftest import Hook
from tests.surfaces.mcp_client import WireClient


def item(content: str, status: str = "pending", **more: str) -> dict[str, str]:
    return {"content": content, "status": status, "activeForm": content, **more}


@pytest.mark.spec("W3", "X2", "C3")
def test_an_agent_that_empties_its_list_is_sent_back_to_what_it_dropped(
    project: Path, environment: dict[str, str], hook: Hook
) -> None:
    with WireClient(project, environment) as client:
        client.call("TodoWrite", todos=[item("Write the tests"), item("Fix the bug"), item("Read", "completed")])
        client.call("TodoWrite", todos=[])
        sent = hook("stop")["reason"]
        assert "2 items are still open" in sent
        assert "“Write the tests”" in sent
        assert "“Fix the bug”" in sent
        assert "dropped" in sent
        assert "status cancelled and" in sent
        client.call("TodoWrite", todos=[item("Write the tests", "completed")])
        assert "“Fix the bug”" in hook("stop")["reason"]
        client.call("TodoWrite", todos=[item("Fix the bug", "cancelled", reason="It is fixed upstream")])
    assert hook("stop") == {}


@pytest.mark.spec("W3", "X2")
def test_a_list_of_the_hosts_own_tool_that_drops_items_keeps_the_agent_too(
    project: Path, environment: dict[str, str], hook: Hook, punchlist: Cli
) -> None:
    use = partial(hook, "tool", "--for", "opencode", tool_name="todowrite")
    use(tool_input={"todos": [item("Write"), item("Test")]})
    use(tool_input={"todos": []})
    sent = hook("stop", "--for", "opencode")["reason"]
    assert "“Write”" in sent
    assert "“Test”" in sent
    use(tool_input={"todos": [item("Write", "completed"), item("Publish")]})
    assert "“Test”" in hook("stop", "--for", "opencode")["reason"]
    # Only our tool can cancel with a reason; the list stays a copy of the host's.
    with WireClient(project, environment) as client:
        client.call(
            "TodoWrite",
            todos=[item("Write", "completed"), item("Publish"), item("Test", "cancelled", reason="Not needed")],
        )
    hook("tool", "--for", "opencode", tool_name="bash", tool_input={"command": "make publish"})
    use(tool_input={"todos": [item("Write", "completed"), item("Publish", "completed")]})
    assert hook("stop", "--for", "opencode") == {}
    use(tool_input={"todos": [item("Later")]})
    use(tool_input={"todos": [item("Later", "cancelled")]})
    assert hook("stop", "--for", "opencode") == {}, "its own tool can cancel"


SWAPPED = [
    ("Write tests for parser", "Write tests for lexer"),
    ("Add endpoint for users", "Add endpoint for orders"),
    ("Fix the login bug", "Fix the logout bug"),
]


@pytest.mark.spec("W3", "X2")
def test_completing_other_items_in_their_place_does_not_end_the_items_of_the_list(
    project: Path, environment: dict[str, str], hook: Hook
) -> None:
    with WireClient(project, environment) as client:
        client.call("TodoWrite", todos=[item(old) for old, _ in SWAPPED])
        text = client.call("TodoWrite", todos=[item(new, "completed") for _, new in SWAPPED])["content"][0]["text"]
        sent = hook("stop")["reason"]
        for old, _ in SWAPPED:
            assert f"[!] {old} (dropped)" in text
            assert f"“{old}”" in sent
        # The same words in another form are the same items.
        client.call("TodoWrite", todos=[item(f"{old} (done)", "completed") for old, _ in SWAPPED])
    assert hook("stop") == {}


@pytest.mark.spec("W3", "X2")
@pytest.mark.parametrize("status", [{"status": "completed"}, {"status": "cancelled", "reason": "No"}])
@pytest.mark.parametrize("reference", ["1", "id", "part"])
def test_an_id_with_another_text_does_not_end_the_item(
    project: Path, environment: dict[str, str], hook: Hook, status: dict[str, str], reference: str
) -> None:
    with WireClient(project, environment) as client:
        (made,) = client.call("TodoWrite", todos=[item("Refactor module")])["structuredContent"]["todos"]
        id = {"1": "1", "id": made["id"], "part": made["id"][:4]}[reference]
        result = client.call("TodoWrite", todos=[{**item("Say hello", id=id), **status}])["structuredContent"]
        assert [(one["content"], one["status"]) for one in result["dropped"]] == [("Refactor module", "pending")]
        assert made["id"] not in [one["id"] for one in result["todos"] if one["content"] == "Say hello"]
        assert "“Refactor module”" in hook("stop")["reason"]
        client.call("TodoWrite", todos=[item("Refactored the module", "completed", id=made["id"])])
    assert hook("stop") == {}
