"""A server that an agent starts for itself is there whatever the settings say: some agents do not start without it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli
from tests.surfaces.mcp_client import PROGRAM, WireClient

from punchlist.trust import Trust

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "codex", "version": "1"}}
CHECKLIST = {"uri": "punchlist://checklist"}
ITEMS = [{"content": "A", "activeForm": "Doing A", "status": "pending"}]

PutRight = Callable[[Path, Cli], Any]


def _rewrite(project: Path, _: Cli) -> None:
    (project / "punchlist.toml").write_text('session = "s"\n')


def _remove(project: Path, _: Cli) -> None:
    (project / "punchlist.toml").rmdir()


def _trust(project: Path, _: Cli) -> None:
    # Not by the command, which is refused here: this process is the agent that started the server.
    Trust.of_user(os.environ).trust(project / "punchlist.toml")


@pytest.fixture(params=["unknown key", "no TOML", "outside", "folder"])
def wrong(request: pytest.FixtureRequest, project: Path) -> tuple[str, PutRight]:
    """Settings that nobody can work with: what is told of them, and how they are put right."""
    file = project / "punchlist.toml"
    if request.param == "folder":
        file.mkdir()
        return "punchlist.toml: cannot be read", _remove
    text, told, put_right = {
        "unknown key": ('sesion = "s"\n', "unknown setting 'sesion'", _rewrite),
        "no TOML": ("session = \n", "is not valid TOML", _rewrite),
        "outside": ('database = "../outside.db"\n', "sets a database outside of the project", _trust),
    }[request.param]
    file.write_text(text)
    return told, put_right


def greeted(client: WireClient) -> None:
    """All that an agent asks before it works."""
    assert client.ask("initialize", HELLO)["result"]["serverInfo"]["name"] == "punchlist"
    for offered in ("tools", "resources", "prompts"):
        assert client.ask(f"{offered}/list")["result"][offered]


@pytest.mark.spec("X2")
@pytest.mark.parametrize("more", [[], ["--session", "own"]], ids=["seated", "session"])
def test_what_is_wrong_with_the_settings_is_told_to_the_model_until_it_is_right(
    project: Path,
    environment: dict[str, str],
    punchlist: Cli,
    wrong: tuple[str, PutRight],
    more: list[str],
) -> None:
    told, put_right = wrong
    with WireClient(project, environment, "--for", "codex", *more) as client:
        greeted(client)
        client.ask("resources/subscribe", CHECKLIST)
        for tool, arguments in (("TodoWrite", {"todos": ITEMS}), ("list_todo", {}), ("claim_todo", {})):
            result = client.call(tool, **arguments)
            assert result["isError"]
            assert told in result["content"][0]["text"]
        for method, asked in (("resources/read", CHECKLIST), ("prompts/get", {"name": "continue"})):
            assert told in client.ask(method, asked)["error"]["message"]
        assert not (project / ".punchlist").exists()
        assert not (project.parent / "outside.db").exists()
        put_right(project, punchlist)
        written = client.call("TodoWrite", todos=ITEMS)
        assert not written["isError"], written
        out, log = client.close()
        assert (out, log, client.process.returncode) == ([], b"", 0)
    sessions = punchlist("sessions", "--json").stdout
    assert ('"own"' in sessions) is bool(more)


@pytest.mark.spec("X2")
def test_a_lead_of_a_mission_that_is_not_there_yet_is_told_so(
    project: Path, environment: dict[str, str], punchlist: Cli
) -> None:
    with WireClient(project, environment, "--for", "codex", "--role", "lead", "--mission", "launch") as client:
        assert "result" in client.ask("initialize", HELLO)
        assert "There is no mission 'launch'" in client.call("TodoWrite", todos=ITEMS)["content"][0]["text"]
        assert "There is no mission 'launch'" in client.ask("resources/list")["error"]["message"]
        (project / "mission.json").write_text(
            '{"slug": "launch", "name": "Launch", "pillars": [{"slug": "web", "name": "Web"}]}'
        )
        done = punchlist("mission", "apply", "mission.json", "--yes")
        assert done.returncode == 0, done.stderr
        assert not client.call("TodoWrite", todos=ITEMS)["isError"]


@pytest.mark.spec("X2")
def test_a_server_whose_folder_has_gone_answers_too(project: Path, environment: dict[str, str]) -> None:
    gone = project / "gone"
    gone.mkdir()
    leave = ["sh", "-c", f'rmdir "{gone}" && exec "$@"', "sh", *PROGRAM]
    with WireClient(gone, environment, "--for", "codex", program=leave) as client:
        greeted(client)
        assert f"The settings cannot be read ({os.strerror(2)})." in client.call("list_todo")["content"][0]["text"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--for", "No Name"],
        ["--for", "No Name", "--session", "s"],
        ["--for", "codex", "--pillar", "web"],
        ["--for", "codex", "--mission", "launch"],
        ["--for", "codex", "--http"],
        ["--for", "codex", "--role", "nobody"],
        ["--for"],
    ],
)
def test_a_wrong_command_line_is_refused_whatever_the_settings_say(
    project: Path, punchlist: Cli, arguments: list[str]
) -> None:
    (project / "punchlist.toml").write_text("session = \n")
    done = punchlist("mcp", *arguments)
    assert (done.returncode, done.stdout) == (2, "")


def test_a_server_that_a_person_starts_ends_with_what_is_wrong(project: Path, punchlist: Cli) -> None:
    (project / "punchlist.toml").write_text('sesion = "s"\n')
    done = punchlist("mcp")
    assert (done.returncode, done.stdout) == (1, "")
    assert "unknown setting 'sesion'" in done.stderr
