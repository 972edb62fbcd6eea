"""The official conformance suite against `punchlist mcp --http`, and the Inspector against `punchlist mcp` (X1).

They are programs for Node; `make test-agents` gets and runs them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from tests.agents.programs import PROGRAMS
from tests.conftest import ROOT, Cli
from tests.surfaces.mcp_http import HttpServer
from tests.surfaces.mcp_proxy import Params, Proxy

_BOTH: Final = {
    "tools-list", "tools-call-simple-text", "tools-call-error", "resources-list", "resources-read-text",
    "resources-templates-read", "prompts-list", "prompts-get-simple", "prompts-get-with-args", "completion-complete",
    "server-sse-multiple-streams", "dns-rebinding-protection",
}  # fmt: skip
APPLICABLE: Final = {
    "2025-11-25": _BOTH | {
        "server-initialize", "server-session-lifecycle", "ping", "tools-call-elicitation", "resources-subscribe",
        "resources-unsubscribe",
    },
    "2026-07-28": _BOTH | {
        "server-stateless", "caching", "http-header-validation", "sep-2164-resource-not-found",
        "input-required-result-result-type", "input-required-result-missing-input-response",
        "input-required-result-unsupported-methods", "input-required-result-validate-input",
    },
}  # fmt: skip
"""Those that ask for something of the suite's example server are given the like of ours: `stand_ins`."""

NOT_APPLICABLE: Final = {
    "logging-set-level", "tools-call-with-logging", "tools-call-sampling", "input-required-result-basic-sampling",
    "input-required-result-basic-list-roots", "input-required-result-capability-check", "tools-call-with-progress",
    "http-custom-header-server-validation", "tools-call-image", "tools-call-audio", "tools-call-embedded-resource",
    "tools-call-mixed-content", "resources-read-binary", "prompts-get-embedded-resource", "prompts-get-with-image",
    "json-schema-2020-12", "server-sse-polling", "elicitation-sep1034-defaults", "elicitation-sep1330-enums",
    "input-required-result-basic-elicitation", "input-required-result-ignore-extra-params",
    "input-required-result-request-state", "input-required-result-tampered-state",
    "input-required-result-multi-round", "input-required-result-multiple-input-requests",
    "input-required-result-non-tool-request",
}  # fmt: skip
"""Why, docs/mcp.md says for each."""
# Of a scenario that is applicable otherwise: they call the example tool `test_missing_capability`.
CHECKS_NOT_APPLICABLE: Final = {
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
}

MISSION: Final = {
    "name": "Mission 123",
    "slug": "mission-123",
    "description": "For a template",
    "pillars": [{"name": "Only one", "slug": "only-one", "description": "It"}],
}


def stand_ins(params: Params, todo_id: str) -> Params:
    """Ours for those of the example server, where we have the like."""
    wait = {"name": "wait_todo", "arguments": {"todoId": todo_id, "for": {"person": "Who are you?"}}}
    ours: dict[str, Params] = {
        "test_simple_text": {"name": "list_todo"},
        "test_error_handling": {"name": "start_todo", "arguments": {"todoId": "nothing"}},
        "test_elicitation": wait,
        "test_input_required_result_elicitation": wait,
        "test_simple_prompt": {"name": "continue"},
        "test_prompt_with_arguments": {"name": "plan", "arguments": {"request": "testValue1 and testValue2"}},
        "test://static-text": {"uri": "punchlist://checklist"},
        "test://watched-resource": {"uri": "punchlist://plan"},
        "test://template/123/data": {"uri": "punchlist://missions/mission-123"},
    }
    if params.get("ref"):
        return {**params, "ref": {"type": "ref/prompt", "name": "plan"}, "argument": {"name": "request", "value": "t"}}
    found = ours.get(str(params.get("name") or params.get("uri")))
    return params if found is None else {**params, **found}


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def node() -> Run:
    """Run a program of the suite's folder."""
    folder, suite = os.environ.get("PUNCHLIST_TEST_AGENTS"), PROGRAMS["mcp-suite"]
    if folder is None:
        pytest.skip("the suite and the Inspector run under `make test-agents`")
    program = suite.path(Path(folder)).resolve()
    packages = suite.folder(Path(folder).resolve()) / "node_modules" / "@modelcontextprotocol"

    def run(script: str, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
        command = [str(program), str(packages / script), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=110, check=False, **more)

    return run


@pytest.mark.spec("X1")
@pytest.mark.parametrize("version", APPLICABLE)
def test_the_suite_finds_nothing_but_what_does_not_apply(
    node: Run, project: Path, environment: dict[str, str], punchlist: Cli, tmp_path: Path, version: str
) -> None:
    found = tmp_path / "found"
    (project / "mission.json").write_text(json.dumps(MISSION))
    assert punchlist("mission", "apply", "mission.json", "--yes").returncode == 0
    with HttpServer(project, environment, "--role", "owner") as server:
        client = server.client()
        client.begin()
        todo_id = client.call("create_todo", items=[{"title": "Ask"}])["structuredContent"]["created"][0]["id"]

        def stand_in(params: Params) -> Params:
            return stand_ins(params, todo_id)

        told = ["--suite", "all", "--spec-version", version, "--output-dir", str(found)]
        with Proxy(server.port, server.token, stand_in) as proxy:
            done = node("conformance/dist/index.js", "server", "--url", proxy.url, *told)
    assert found.is_dir(), done.stdout + done.stderr
    checks = {
        re.sub(r"^server-(.*)-\d{4}-\d\d-\d\dT.*", r"\1", folder.name): json.loads((folder / "checks.json").read_text())
        for folder in found.iterdir()
    }
    assert set(checks) - NOT_APPLICABLE == APPLICABLE[version]
    problems = [
        (scenario, check["id"], check.get("errorMessage"))
        for scenario in APPLICABLE[version]
        for check in checks[scenario]
        if check["status"] in ("FAILURE", "WARNING") and check["id"] not in CHECKS_NOT_APPLICABLE
    ]
    assert problems == []
    assert all(any(check["status"] == "SUCCESS" for check in checks[scenario]) for scenario in APPLICABLE[version])


@pytest.mark.spec("X1")
def test_the_inspector_works_with_the_server(node: Run, project: Path, environment: dict[str, str]) -> None:
    program = shutil.which("punchlist", path=str(ROOT / ".venv" / "bin")) or shutil.which("punchlist")
    assert program

    def inspect(method: str, *arguments: str) -> Any:
        script = "inspector/clients/launcher/build/index.js"
        done = node(script, "--cli", program, "mcp", "--method", method, *arguments, cwd=project, env=environment)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    assert len(inspect("tools/list", "--strict")["tools"]) == 9
    items = 'items=[{"title": "From the Inspector"}]'
    created = inspect("tools/call", "--tool-name", "create_todo", "--tool-arg", items)
    assert created["structuredContent"]["totalPending"] == 1
    assert [one["name"] for one in inspect("prompts/list")["prompts"]] == ["plan", "continue", "review-list"]
    filled = inspect("prompts/get", "--prompt-name", "continue")
    assert "From the Inspector" in filled["messages"][0]["content"]["text"]
    assert [one["name"] for one in inspect("resources/list")["resources"]] == ["checklist", "plan"]
    plan = inspect("resources/read", "--uri", "punchlist://plan")["contents"][0]
    assert json.loads(plan["text"])["items"][0]["title"] == "From the Inspector"


def test_what_does_not_apply_is_documented() -> None:
    page = (ROOT / "docs" / "mcp.md").read_text()
    assert [name for name in (*NOT_APPLICABLE, *CHECKS_NOT_APPLICABLE) if f"`{name}`" not in page] == []
