"""`punchlist todos claim`, `renew`, `release` and `done`: people and scripts beside agents (X3)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli
from tests.surfaces.mcp_client import WireClient


@pytest.fixture
def agent(project: Path, environment: dict[str, str]) -> WireClient:
    """An agent that has planned A and B."""
    client = WireClient(project, environment)
    client.call("create_todo", items=[{"title": "A"}, {"title": "B"}])
    return client


@pytest.fixture
def answered(punchlist: Cli) -> Any:
    """What a command says as JSON."""

    def run(*arguments: str, code: int = 0) -> Any:
        done = punchlist("todos", *arguments, "--json")
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.mark.spec("X3")
def test_a_script_claims_keeps_and_completes_beside_an_agent(agent: WireClient, punchlist: Cli, answered: Any) -> None:
    with agent:
        theirs = agent.call("claim_todo")["structuredContent"]
        claimed = answered("claim", "--as", "script-1", "--seconds", "60")
        assert (claimed["todo"]["title"], claimed["fence"]) == ("B", 1)
        id, fence = claimed["todo"]["id"], "1"
        assert "2 claimed, the first until" in answered("claim", "--as", "script-2")["next"]
        kept = answered("renew", id, "--fence", fence, "--as", "script-1")
        assert kept["claimedUntil"] > claimed["claimedUntil"]
        assert answered("renew", id, "--fence", fence, "--as", "script-2", code=1)["error"]["code"] == "not_allowed"
        first, second = answered()["items"]
        assert "supervisor:mcp in" in first["claimedBy"]
        assert "(script-1)" in second["claimedBy"]
        assert "claimed by supervisor:mcp" in punchlist("todos").stdout
        late = answered("done", id, "done", "--fence", "7", code=1)
        assert (late["error"]["code"], "no claim with fence 7" in late["error"]["message"]) == ("conflict", True)
        assert [item["status"] for item in answered("done", "2", "done", "--fence", fence)["items"]] == [
            "pending",
            "completed",
        ]
        released = answered("release", "1", "--why", "it hangs")
        assert released["released"]
        refused = agent.call("renew_claim", todoId=theirs["todo"]["id"], fence=1)
        assert "a claim that is free" in refused["content"][0]["text"]
        assert answered("claim")["fence"] == 2
        assert '"it hangs"' in punchlist("log", "--json").stdout


@pytest.mark.spec("X3")
def test_a_person_reads_what_a_claim_is(agent: WireClient, punchlist: Cli) -> None:
    with agent:
        said = punchlist("todos", "claim").stdout
        first, second = said.splitlines()
        assert first.startswith("You hold todo 1 “A” until 20")
        id, fence = second.removeprefix("id ").split(", fence ")
        assert punchlist("todos", "renew", "1", "--fence", fence).stdout.startswith("You hold todo 1 until 20")
        assert "(terminal) held it." in punchlist("todos", "release", id, "--fence", fence).stdout
        assert "1 ✓ A (accepted, seen to)" in punchlist("todos", "done", id, "seen to").stdout


@pytest.mark.spec("X3")
def test_without_a_turn_there_is_nothing_to_claim(punchlist: Cli, answered: Any) -> None:
    assert answered("claim") == {"todo": None, "next": "No todo is left to claim."}
    refused = punchlist("todos", "renew", "x", "--fence", "1")
    assert (refused.returncode, "has no open turn" in refused.stderr) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("claim", "--seconds", "0"), 2, "--seconds"),
        (("claim", "--seconds", "86401"), 2, "--seconds"),
        (("renew", "x"), 2, "--fence"),
        (("renew", "x", "--fence", "0"), 2, "--fence"),
        (("claim", "--as", "a\x1bb"), 1, "--as: must not contain control characters"),
        (("claim", "nothing"), 1, "has no todo 'nothing'. Numbers: 1, 2."),
        (("done", "1", " "), 1, "outcome: must be 1 to"),
    ],
)
def test_a_wrong_claim_is_refused_in_words(
    agent: WireClient, punchlist: Cli, arguments: tuple[str, ...], code: int, told: str
) -> None:
    with agent:
        refused = punchlist("todos", *arguments)
    assert (refused.returncode, refused.stdout) == (code, "")
    assert told in refused.stderr
