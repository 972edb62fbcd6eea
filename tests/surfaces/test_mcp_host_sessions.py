"""An agent's server and its hooks mean the same list, through whatever starts them; another agent's do not."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from tests.conftest import Cli
from tests.surfaces.host_program import Host

SAID: Final = {"session_id": "s1"}
_SHELL: Final = f"""\
#!/bin/sh
'{sys.executable}' -m punchlist "$@"
exit $?
"""
_RUNNER: Final = f"""\
#!{sys.executable}
import subprocess, sys
sys.exit(subprocess.run([sys.executable, "-m", "punchlist", *sys.argv[1:]]).returncode)
"""
_UNKNOWN: Final = f"""\
#!/bin/sh
exec find / -maxdepth 0 -exec '{sys.executable}' -m punchlist "$@" ";"
"""


def script(folder: Path, name: str, text: str) -> str:
    """A program that starts ours, and stays above it."""
    file = folder / name
    file.write_text(text)
    file.chmod(0o755)
    return str(file)


def create(host: Host, title: str, **where: str) -> None:
    assert not host.ask(tool="create_todo", arguments={"items": [{"title": title}]}, **where)["isError"]


def titles(host: Host, **where: str) -> list[str]:
    listed = host.ask(tool="list_todo", arguments={}, **where)["structuredContent"]["items"]
    return [item["title"] for item in listed]


@pytest.mark.spec("X2")
@pytest.mark.parametrize(
    ("name", "text"),
    [("punchlist", _SHELL), ("lists", _SHELL), ("punchlist", _RUNNER), ("run-it", _RUNNER)],
    ids=["a script of our name", "a script of any name", "a runner of our name", "a runner of any name"],
)
def test_an_agent_is_sent_back_to_its_list_by_hooks_that_a_wrapper_starts(
    project: Path, environment: dict[str, str], tmp_path: Path, punchlist: Cli, name: str, text: str
) -> None:
    wrapper = script(tmp_path, name, text)
    with (
        Host(project, "codex", environment, server=wrapper, hooks=wrapper) as one,
        Host(project, "codex", environment, server=wrapper, hooks=wrapper) as two,
    ):
        create(one, "Of the first")
        create(two, "Of the second")
        assert "“Of the first”" in one.ask(hook="stop", said=SAID)["reason"]
        assert "“Of the second”" in two.ask(hook="stop", said={"session_id": "s2"})["reason"]
    assert len(json.loads(punchlist("sessions", "--json").stdout)) == 2


@pytest.mark.spec("X2")
def test_what_stands_between_an_agent_and_its_hook_is_no_agent_of_its_own(
    project: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    with Host(project, "claude-code", environment, hooks=script(tmp_path, "unknown", _UNKNOWN)) as host:
        create(host, "Open")
        assert "“Open”" in host.ask(hook="stop", said=SAID)["reason"]
        # Under another name it is one: an agent that this one has started.
        assert host.ask(hook="stop", said=SAID, **{"as": "codex"}) == {}
        assert titles(host) == ["Open"]


@pytest.mark.spec("X2", "C16")
@pytest.mark.parametrize("inner", ["codex", "claude-code"], ids=["another", "the same"])
def test_an_agent_that_an_agent_starts_has_a_list_of_its_own(
    project: Path, environment: dict[str, str], inner: str
) -> None:
    inside: dict[str, Any] = {"inside": inner}
    with Host(project, "claude-code", environment) as host:
        create(host, "Of the outer one")
        assert host.ask(hook="stop", said={"session_id": "s2"}, **inside) == {}
        assert titles(host, **inside) == []
        create(host, "Of the inner one", **inside)
        assert "“Of the inner one”" in host.ask(hook="stop", said={"session_id": "s2"}, **inside)["reason"]
        assert "“Of the outer one”" in host.ask(hook="stop", said=SAID)["reason"]
        assert titles(host) == ["Of the outer one"]
