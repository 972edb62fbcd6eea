"""What settings files say about tools, and what they may say before somebody trusts them."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from punchlist.config import load
from punchlist.errors import ConfigError
from punchlist.toolcalls.approvals import ApprovalExpiry, OnExpiry
from punchlist.toolcalls.policy import Mode, Verdict
from punchlist.tools.sandbox import SandboxMode, SandboxSettings, load_sandbox
from punchlist.tools.settings import ToolSettings, load_tool_settings
from punchlist.trust import Trust

LOOSE = """
[policy]
mode = "yolo"
expiry = "36h"
on_expiry = "escalate"

[[policy.rules]]
decision = "deny"
tool = "run_command"
command = "rm -rf"

[[policy.rules]]
decision = "allow"
tool = "write_*"
arguments = { path = "docs/*" }
mode = ["default", "auto-edit"]

[workspace]
also = ["../common"]

[mcp.servers.docs]
url = "http://127.0.0.1:9/mcp"
"""


@pytest.fixture
def trust(tmp_path: Path) -> Trust:
    return Trust(tmp_path / "data")


def settings(project: Path, tmp_path: Path, trust: Trust) -> ToolSettings:
    return load_tool_settings(load(environment={"HOME": str(tmp_path / "home")}, cwd=project), trust)


def test_a_trusted_file_says_what_it_wants(project: Path, tmp_path: Path, trust: Trust) -> None:
    (project / "punchlist.toml").write_text(LOOSE)
    trust.trust(project / "punchlist.toml")
    found = settings(project, tmp_path, trust)
    assert found.untrusted_requests == ()
    assert found.policy.mode is Mode.YOLO
    assert found.policy.expiry == ApprovalExpiry(OnExpiry.ESCALATE, timedelta(hours=36))
    assert [rule.verdict for rule in found.policy.rules] == [Verdict.DENY, Verdict.ALLOW]
    assert found.policy.rules[0].commands == (("rm", "-rf"),)
    assert found.policy.rules[1].modes == {Mode.DEFAULT, Mode.AUTO_EDIT}
    assert [server.name for server in found.servers] == ["docs"]
    assert found.extra_folders == (project / "../common",)


def test_a_file_that_nobody_trusts_can_only_ask_for_less(project: Path, tmp_path: Path, trust: Trust) -> None:
    (project / "punchlist.toml").write_text(LOOSE)
    found = settings(project, tmp_path, trust)
    assert found.policy.mode is None
    assert [rule.verdict for rule in found.policy.rules] == [Verdict.DENY]
    assert found.servers == ()
    assert found.extra_folders == ()
    assert len(found.untrusted_requests) == 4


def test_trust_ends_when_the_file_changes_or_somebody_says_so(project: Path, tmp_path: Path, trust: Trust) -> None:
    file = project / "punchlist.toml"
    file.write_text(LOOSE)
    trust.trust(file)
    assert trust.trusts(file)
    file.write_text(LOOSE + "# more\n")
    assert not trust.trusts(file)
    trust.trust(file)
    trust.forget(file)
    assert not trust.trusts(file)


@pytest.mark.parametrize("content", ["", "[", "[]", '{"a": 1}', "\x00"])
def test_a_broken_list_of_trusted_files_trusts_nothing(
    project: Path, tmp_path: Path, trust: Trust, content: str
) -> None:
    file = project / "punchlist.toml"
    file.write_text(LOOSE)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "trusted.json").write_text(content)
    assert not trust.trusts(file)
    trust.trust(file)
    assert trust.trusts(file)


def test_the_users_own_file_needs_no_trust(project: Path, tmp_path: Path, trust: Trust) -> None:
    folder = tmp_path / "home" / ".config" / "punchlist"
    folder.mkdir(parents=True)
    (folder / "punchlist.toml").write_text(LOOSE)
    (project / "punchlist.toml").write_text('[policy]\nmode = "plan"\n[[policy.rules]]\ndecision = "ask"\n')
    found = settings(project, tmp_path, trust)
    assert found.policy.mode is Mode.PLAN
    assert [rule.verdict for rule in found.policy.rules] == [Verdict.ASK, Verdict.DENY, Verdict.ALLOW]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("policy = 5", "policy: must be a table"),
        ('[policy]\nmod = "yolo"', "policy.mod: is not known"),
        ('[policy]\nmode = "wild"', "policy.mode: must be one of plan, default"),
        ('[policy]\nexpiry = "soon"', "policy.expiry: must be a time"),
        ('[policy]\non_expiry = "deny"', "policy.on_expiry: needs an expiry"),
        ("[[policy.rules]]\n", "policy.rules[1].decision: is required"),
        ('[[policy.rules]]\ndecision = "alow"', "policy.rules[1].decision: must be one of"),
        ('[[policy.rules]]\ndecision = "allow"\nmode = "wild"', "policy.rules[1].mode: must be of"),
        ('[[policy.rules]]\ndecision = "deny"\ncommand = ""', "policy.rules[1].command: must not be empty"),
        ("[workspace]\nalso = 5", "workspace.also: must be text"),
        ("[mcp.servers.x]\n", "either a command or a url"),
        ("[mcp.servers.x]\ncommand = [1]", "mcp.servers.x.command: must be text"),
        ('[mcp.servers."a b"]\ncommand = "x"', "cannot be part of a tool name"),
    ],
)
def test_a_wrong_setting_is_named_with_its_place(
    project: Path, tmp_path: Path, trust: Trust, text: str, told: str
) -> None:
    (project / "punchlist.toml").write_text(text)
    with pytest.raises(ConfigError) as error:
        settings(project, tmp_path, trust)
    assert told in str(error.value)


SANDBOX = """
[sandbox]
commands = "off"
network = true
writable = ["../cache"]
env_pass = ["NPM_TOKEN", "AWS_*"]
"""


def user_file(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "home/.config/punchlist"
    folder.mkdir(parents=True)
    (folder / "punchlist.toml").write_text(text)


@pytest.mark.spec("X10")
def test_a_project_can_turn_the_sandbox_on_and_only_a_trusted_one_can_loosen_it(
    project: Path, tmp_path: Path, trust: Trust
) -> None:
    file = project / "punchlist.toml"
    user_file(tmp_path, '[sandbox]\ncommands = "workspace"\nnetwork = false\nenv_pass = "GH_TOKEN"\n')
    file.write_text(SANDBOX)
    untrusted = settings(project, tmp_path, trust)
    assert untrusted.sandbox == SandboxSettings(SandboxMode.WORKSPACE, False, (), ("GH_TOKEN",))
    assert len(untrusted.untrusted_requests) == 5
    trust.trust(file)
    trusted = settings(project, tmp_path, trust).sandbox
    assert trusted == SandboxSettings(
        SandboxMode.OFF, True, (project / "../cache",), ("NPM_TOKEN", "AWS_*", "GH_TOKEN")
    )
    assert trusted == load_sandbox(load(environment={"HOME": str(tmp_path / "home")}, cwd=project), trust)


@pytest.mark.spec("X10")
def test_an_untrusted_project_tightens_the_sandbox(project: Path, tmp_path: Path, trust: Trust) -> None:
    user_file(tmp_path, "[sandbox]\nnetwork = true\n")
    (project / "punchlist.toml").write_text('[sandbox]\ncommands = "workspace"\nnetwork = false\n')
    found = settings(project, tmp_path, trust)
    assert found.sandbox == SandboxSettings(SandboxMode.WORKSPACE, False)
    assert found.untrusted_requests == ()


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('commands = "on"', "sandbox.commands: must be one of off, workspace"),
        ('network = "no"', "sandbox.network: must be true or false"),
        ('env_pass = ["A B"]', "sandbox.env_pass: must be names"),
        ("writeable = []", "Did you mean writable?"),
    ],
)
def test_a_wrong_sandbox_setting_is_named(project: Path, tmp_path: Path, trust: Trust, line: str, problem: str) -> None:
    (project / "punchlist.toml").write_text(f"[sandbox]\n{line}\n")
    with pytest.raises(ConfigError, match=re.escape(problem)):
        settings(project, tmp_path, trust)
