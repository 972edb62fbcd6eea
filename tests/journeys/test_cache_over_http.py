"""What a provider can reuse from one request to the next: marked prefixes, and the reasoning of earlier replies."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest
from tests.conftest import Cli
from tests.contract.asked import changes, problems
from tests.contract.scripted_http import Answer, Asked, ScriptedServer
from tests.journeys.over_http import MARKS, MODELS, NOTES, SAYS

LOOKS: Final = [Answer("", [("find_files", {"pattern": f"{n}-{m}"}) for m in range(12)]) for n in range(3)]
THOUGHT: Final = "The person wants x, so x it is."
REASONING_MODELS: Final = ("anthropic:m", "openai-chat:m", "openai:gpt-5")


def blocks(asked: Asked) -> Iterator[dict[str, Any]]:
    """The blocks of a request in the order in which a provider caches them."""
    yield from asked.body["tools"]
    yield from asked.body["system"]
    for message in asked.body["messages"]:
        content = message["content"]
        yield from content if isinstance(content, list) else [{"type": "text", "text": content}]


def marked(asked: Asked) -> list[int]:
    return [number for number, block in enumerate(blocks(asked)) if "cache_control" in block]


def is_state(block: dict[str, Any]) -> bool:
    return str(block.get("text", "")).startswith("<state>")


def run(punchlist: Cli, model: str, answers: Sequence[Answer], *flags: str) -> Sequence[Asked]:
    with ScriptedServer(answers) as server:
        done = punchlist("run", "Write x.", "--model", model, "--mode", "yolo", *flags, env=server.environment())
    assert done.returncode == 0, done.stderr
    assert THOUGHT not in done.stdout + done.stderr
    return server.asked


@pytest.mark.spec("T11")
def test_anthropic_is_told_to_cache_tools_system_prompt_and_all_messages_before_the_state(
    punchlist: Cli, project: Path
) -> None:
    asked = run(punchlist, "anthropic:m", [NOTES, *LOOKS, MARKS, SAYS])
    assert changes(asked) == []
    assert [problem for request in asked for problem in problems(request)] == []
    for request in asked:
        found, places = list(blocks(request)), marked(request)
        assert len(places) <= 4
        tools, system = len(request.body["tools"]), len(request.body["system"])
        assert places[:2] == [tools - 1, tools + system - 1]
        last = next((number for number, block in enumerate(found) if is_state(block)), len(found)) - 1
        assert places[-1] == last
    for before, after in pairwise(asked):
        # What the one request has written, the next one finds, however many calls lie between them.
        assert marked(before)[-1] in marked(after)


@pytest.mark.spec("T11")
@pytest.mark.parametrize("model", [MODELS["chat"], MODELS["responses"]])
def test_the_other_providers_cache_by_themselves(punchlist: Cli, project: Path, model: str) -> None:
    asked = run(punchlist, model, [NOTES, MARKS, SAYS])
    assert "cache_control" not in json.dumps([request.body for request in asked])
    assert changes(asked) == []


@pytest.mark.spec("T11")
@pytest.mark.parametrize("model", REASONING_MODELS)
def test_reasoning_is_sent_back_where_it_was_and_never_shown(punchlist: Cli, project: Path, model: str) -> None:
    thinks = Answer(NOTES.text, NOTES.calls, thought=THOUGHT)
    asked = run(punchlist, model, [thinks, MARKS, SAYS])
    for request in asked[1:]:
        assert reasoning(request) == [THOUGHT]
    assert changes(asked) == []
    assert THOUGHT not in punchlist("sessions", "show").stdout


@pytest.mark.spec("T11")
def test_a_resumed_turn_has_the_reasoning_of_its_replies(punchlist: Cli, project: Path) -> None:
    writes = Answer("", [("write_file", {"path": "x.txt", "content": "x"})], thought=THOUGHT)
    with ScriptedServer([writes]) as server:
        done = punchlist("run", "Write x.", "--model", "anthropic:m", env=server.environment())
    assert done.returncode == 4, done.stderr
    (question,) = json.loads(punchlist("approvals", "--json").stdout)
    assert punchlist("approvals", "approve", question["callId"]).returncode == 0
    with ScriptedServer([SAYS]) as server:
        done = punchlist("run", "--resume", "--model", "anthropic:m", env=server.environment())
    assert done.returncode == 0, done.stderr
    assert reasoning(server.asked[0]) == [THOUGHT]
    # Another model gets the calls and results, without the reasoning.
    with ScriptedServer([Answer("Hello.")]) as server:
        punchlist("run", "Hello?", "--model", "openai:m", env=server.environment())
    assert THOUGHT not in json.dumps(server.asked[0].body)


def reasoning(asked: Asked) -> list[str]:
    """The reasoning in a request, each right before the reply that it belongs to."""
    found: list[str] = []
    for item in asked.body.get("input", ()):
        if item.get("type") == "reasoning":
            assert item["encrypted_content"] == f"signed {item['summary'][0]['text']}"
            found.append(item["summary"][0]["text"])
    for message in asked.body.get("messages", ()):
        if message.get("reasoning_content"):
            assert message["tool_calls"]
            found.append(message["reasoning_content"])
        content = message.get("content")
        for number, block in enumerate(content if isinstance(content, list) else ()):
            if block["type"] == "thinking":
                assert (number, message["role"]) == (0, "assistant")
                assert block["signature"] == f"signed {block['thinking']}"
                found.append(block["thinking"])
    return found
