"""`punchlist mcp --lists`: one kind of list, or both (T13)."""

from __future__ import annotations

import json

import pytest
from tests.conftest import Cli


@pytest.mark.spec("T13", "X1")
@pytest.mark.parametrize(
    ("lists", "offered", "missing"),
    [
        ("plan", {"create_todo", "wait_todo", "claim_todo"}, {"TodoWrite"}),
        ("checklist", {"TodoWrite"}, {"create_todo", "list_todo", "complete_todo", "wait_todo", "claim_todo"}),
        ("both", {"TodoWrite", "create_todo"}, set()),
    ],
)
def test_a_server_offers_the_tools_of_its_lists(
    punchlist: Cli, lists: str, offered: set[str], missing: set[str]
) -> None:
    requests = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    sent = "\n".join(map(json.dumps, requests)) + "\n"
    served = punchlist("mcp", "--lists", lists, input=sent)
    greeted, listed = map(json.loads, served.stdout.splitlines())
    names = {tool["name"] for tool in listed["result"]["tools"]}
    assert offered <= names
    assert not missing & names
    assert not [name for name in missing if name in greeted["result"]["instructions"]]
