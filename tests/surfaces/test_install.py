"""`punchlist install`, `uninstall`, `status`: what they do to the files of other programs."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli
from tests.faults.processes import answered

from punchlist.errors import ConfigError, Conflict
from punchlist.integrations.install import files
from punchlist.integrations.install.files import FileChange, diff
from punchlist.integrations.install.host_names import HostName, InstallScope
from punchlist.integrations.install.hosts import HOSTS
from punchlist.integrations.install.installer import Installer, install_location

NAMES = list(HostName)
FILES = {
    "claude-code": [".claude/settings.json", ".mcp.json"],
    "codex": [".codex/config.toml", ".codex/hooks.json"],
    "gemini": [".gemini/settings.json"],
    "opencode": [".opencode/plugins/punchlist.js", "opencode.json"],
}
AT_HOME = {
    "claude-code": [".claude.json", ".claude/settings.json"],
    "codex": [".codex/config.toml", ".codex/hooks.json"],
    "gemini": [".gemini/settings.json"],
    "opencode": [".config/opencode/opencode.json", ".config/opencode/plugins/punchlist.js"],
}
EVENTS = {
    "claude-code": {
        "Stop": "stop",
        "UserPromptSubmit": "prompt",
        "SessionStart": "session-start",
        "PostToolUse": "tool",
    },
    "codex": {"Stop": "stop", "UserPromptSubmit": "prompt", "SessionStart": "session-start", "PostToolUse": "tool"},
    "gemini": {"AfterAgent": "stop", "BeforeAgent": "prompt", "SessionStart": "session-start", "AfterTool": "tool"},
}


def snapshot(folder: Path) -> dict[str, Any]:
    """Everything in a folder: bytes, permissions, links."""
    found = dict[str, Any]()
    for path in sorted(folder.rglob("*")):
        what: Any = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(folder))] = (what, stat.S_IMODE(path.lstat().st_mode))
    return found


def here(name: str, project: Path, environment: dict[str, str], *, user: bool = False) -> Installer:
    scope = InstallScope.USER if user else InstallScope.PROJECT
    return Installer(HOSTS[HostName(name)], install_location(scope, project, environment))


def do(there: Installer, *, undo: bool = False, program: tuple[str, ...] | None = ("punchlist",)) -> list[Path]:
    plan = there.plan_uninstall() if undo else there.plan_install(program)
    return there.apply(plan)


def standing_of(there: Installer) -> set[str]:
    return {entry.state.value for _, entry in there.entries()}


def new_files(folder: Path) -> list[str]:
    return sorted(name for name, (what, _) in snapshot(folder).items() if what is not None)


# --- the journey -----------------------------------------------------------------------------------------------------


@pytest.mark.spec("X2")
@pytest.mark.parametrize("name", NAMES)
def test_one_command_installs_and_one_undoes_it_to_the_byte(punchlist: Cli, project: Path, name: str) -> None:
    before = snapshot(project)
    done = punchlist("install", name, "--yes")
    assert done.returncode == 0, done.stderr
    assert new_files(project) == FILES[name]
    assert "Installed." in done.stdout
    assert f"punchlist uninstall {name}" in done.stdout
    again = punchlist("install", name, "--yes")
    assert "already installed" in again.stdout
    undone = punchlist("uninstall", name, "--yes")
    assert undone.returncode == 0, undone.stderr
    assert snapshot(project) == before


@pytest.mark.spec("X2")
def test_where_nothing_is_installed_there_is_nothing_to_take_out(punchlist: Cli, project: Path) -> None:
    before = snapshot(project)
    done = punchlist("uninstall", "codex")
    assert (done.returncode, "There is nothing to remove." in done.stdout) == (0, True)
    assert snapshot(project) == before


@pytest.mark.spec("X2")
@pytest.mark.parametrize("name", NAMES)
def test_for_the_user_it_is_in_the_users_own_configuration(
    project: Path, environment: dict[str, str], tmp_path: Path, name: str
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    before = snapshot(project)
    there = here(name, project, environment, user=True)
    do(there)
    assert [one for one in new_files(home) if "share/punchlist" not in one] == AT_HOME[name]
    do(there, undo=True)
    assert [one for one in new_files(home) if "share/punchlist" not in one] == []
    assert {one.name for one in home.iterdir()} == {".local"}
    assert snapshot(project) == before


@pytest.mark.spec("X2")
@pytest.mark.parametrize("name", EVENTS)
def test_the_hooks_that_are_registered(project: Path, environment: dict[str, str], name: str) -> None:
    do(here(name, project, environment), program=("/opt/my tools/punchlist",))
    file = next(one for one in FILES[name] if one.endswith(("settings.json", "hooks.json")))
    hooks = json.loads((project / file).read_text())["hooks"]
    told = {at: [one for group in groups for one in group["hooks"]] for at, groups in hooks.items()}
    assert {at: [one["command"] for one in ones] for at, ones in told.items()} == {
        at: [f"'/opt/my tools/punchlist' hook {event} --for {name}"] for at, event in EVENTS[name].items()
    }
    timeouts = {one["timeout"] for ones in told.values() for one in ones}
    assert timeouts == ({20_000} if name == "gemini" else {20})


@pytest.mark.spec("X1", "X2")
def test_the_servers_that_are_registered(project: Path, environment: dict[str, str]) -> None:
    for name in ("claude-code", "codex", "gemini"):
        do(here(name, project, environment))
    claude = json.loads((project / ".mcp.json").read_text())["mcpServers"]["punchlist"]
    args = ["mcp", "--for", "claude-code", "--lists", "plan"]
    assert claude == {"type": "stdio", "command": "punchlist", "args": args, "alwaysLoad": True}
    codex = tomllib.loads((project / ".codex/config.toml").read_text())["mcp_servers"]["punchlist"]
    assert (codex["command"], codex["required"]) == ("punchlist", True)
    assert codex["args"] == ["mcp", "--for", "codex", "--lists", "plan"]
    assert "PUNCHLIST_DATABASE_URL" in codex["env_vars"]
    gemini = json.loads((project / ".gemini/settings.json").read_text())["mcpServers"]["punchlist"]
    assert gemini == {"command": "punchlist", "args": ["mcp", "--for", "gemini", "--lists", "plan"]}


@pytest.mark.spec("X2")
def test_install_offers_one_list_and_keeps_the_choice(punchlist: Cli, project: Path) -> None:
    def offered() -> tuple[list[str], str]:
        server = json.loads((project / ".mcp.json").read_text())["mcpServers"]["punchlist"]
        status = json.loads(punchlist("status", "claude-code", "--json").stdout)
        return server["args"][3:], status["agents"][0]["scopes"][0]["lists"]

    install = ("install", "claude-code", "--yes")
    assert punchlist(*install).returncode == 0
    assert offered() == (["--lists", "plan"], "plan")
    assert punchlist(*install, "--lists", "checklist").returncode == 0
    assert offered() == (["--lists", "checklist"], "checklist")
    assert "nothing to change" in punchlist(*install).stdout
    assert "installed, offers the checklist" in punchlist("status", "claude-code").stdout
    elsewhere = punchlist("uninstall", "claude-code", "--user").stdout
    assert f"It is installed for the project {project}: punchlist uninstall claude-code\n" in elsewhere
    file = project / ".mcp.json"
    server = json.loads(file.read_text())
    server["mcpServers"]["punchlist"]["args"] = ["mcp", "--for", "claude-code", "--session", "mine"]
    file.write_text(json.dumps(server))
    assert "nothing to change" in punchlist(*install).stdout, "an entry of before, or edited by a person"
    assert offered()[1] == "both"
    assert punchlist(*install, "--lists", "both").returncode == 0
    assert offered() == (["--lists", "both", "--session", "mine"], "both")


@pytest.mark.spec("X1", "X2")
def test_opencode_gets_a_server_and_a_plugin(project: Path, environment: dict[str, str]) -> None:
    (project / "opencode.jsonc").write_text('{\n  // mine\n  "theme": "dark",\n}\n')
    do(here("opencode", project, environment), program=("uvx", "punchlist"))
    text = (project / "opencode.jsonc").read_text()
    assert text.startswith('{\n  // mine\n  "theme": "dark",\n  "mcp": {')
    assert '"command": [' in text
    assert not (project / "opencode.json").exists()
    assert '["uvx", "punchlist"]' in (project / ".opencode/plugins/punchlist.js").read_text().replace('","', '", "')


# --- showing and asking ----------------------------------------------------------------------------------------------


@pytest.mark.spec("X2")
def test_the_exact_change_is_shown_first_and_applies(punchlist: Cli, project: Path) -> None:
    (project / ".gemini").mkdir()
    settings = project / ".gemini" / "settings.json"
    settings.write_bytes(b'{\r\n\t"theme": "x", // my own\r\n\t"hooks": {"AfterTool": []}\r\n}')
    before = snapshot(project)
    told = json.loads(punchlist("install", "gemini", "--dry-run", "--json").stdout)
    assert snapshot(project) == before
    assert (told["agent"], told["scope"], told["done"], told["backups"]) == ("gemini", "project", False, [])
    [change] = told["changes"]
    assert (change["path"], change["action"]) == (str(settings), "change")
    done = json.loads(punchlist("install", "gemini", "--yes", "--json").stdout)
    assert done["changes"] == told["changes"]
    assert done["done"] is True
    [backup] = done["backups"]
    assert Path(backup).read_bytes() == before[".gemini/settings.json"][0]
    assert stat.S_IMODE(Path(backup).stat().st_mode) == 0o600
    assert patched(settings, before[".gemini/settings.json"][0], change["diff"]) == settings.read_bytes()


def patched(file: Path, content: bytes, change: str) -> bytes:
    """A content after a change that was shown, as a program makes it that takes it by its word."""
    if shutil.which("patch") is None:
        pytest.skip("no patch here")
    copy = file.with_name("copy")
    copy.write_bytes(content)
    command = ["patch", "--binary", "--fuzz=0", "-p0", str(copy)]
    done = subprocess.run(command, input=change.encode(), check=True, capture_output=True)
    assert b"offset" not in done.stdout
    return copy.read_bytes()


@pytest.mark.spec("X2")
def test_a_change_in_the_middle_of_a_long_file_is_shown_with_what_is_around_it(tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(200)]
    for kept in (lines, lines[:1], lines[:4]):
        before = "\n".join(kept).encode()
        after = "\n".join([*kept[: len(kept) // 2], "new", *kept[len(kept) // 2 :], "last"]).encode() + b"\n"
        for one, other in ((before, after), (after, before)):
            shown = diff(FileChange(tmp_path / "x", one, other))
            assert patched(tmp_path / "x", one, shown) == other
            assert len(shown.splitlines()) < 30
    assert "\n line 97\n line 98\n line 99\n+new\n line 100\n" in diff(FileChange(tmp_path / "x", *_with_new(lines)))
    long = "x" * 100_000
    shown = diff(FileChange(tmp_path / "x", f"{long}{long}".encode(), f"{long}NEW{long}".encode()))
    assert "xNEWx" in shown
    assert len(shown) < 1_000


def _with_new(lines: list[str]) -> tuple[bytes, bytes]:
    return "\n".join(lines).encode(), "\n".join([*lines[:100], "new", *lines[100:]]).encode()


@pytest.mark.spec("X2")
@pytest.mark.parametrize("input", ["", "n\n", "y\n"])
def test_without_a_terminal_and_without_yes_nothing_is_changed(punchlist: Cli, project: Path, input: str) -> None:
    before = snapshot(project)
    done = punchlist("install", "codex", input=input)
    assert (done.returncode, snapshot(project)) == (1, before)
    assert "+[mcp_servers.punchlist]" in done.stdout
    assert "Confirm the changes with --yes" in done.stderr
    assert punchlist("install", "codex", "--yes").returncode == 0
    installed = snapshot(project)
    done = punchlist("uninstall", "codex", input=input)
    assert (done.returncode, snapshot(project)) == (1, installed)
    assert "-[mcp_servers.punchlist]" in punchlist("uninstall", "codex", "--yes", "--dry-run").stdout
    assert punchlist("uninstall", "codex", "--yes").returncode == 0


@pytest.mark.spec("X2")
def test_a_person_at_a_terminal_is_asked(project: Path, environment: dict[str, str]) -> None:
    for answer, code, there in ((b"n\n", 1, False), (b"y\n", 0, True)):
        done = answered(project, environment, b"Make these changes?", answer, "install", "codex")
        assert done.returncode == code, done.stderr
        assert b"Make these changes?" in done.stderr
        assert (project / ".codex" / "hooks.json").exists() is there


# --- in a folder of the project --------------------------------------------------------------------------------------


@pytest.mark.spec("X2")
@pytest.mark.parametrize("name", ["claude-code", "gemini"])
def test_who_installs_it_in_a_folder_of_the_project_is_told_where_to_start_the_agent(
    punchlist: Cli, project: Path, name: str
) -> None:
    web = project / "packages" / "web"
    web.mkdir(parents=True)
    line = f"The project is {project}: start {HOSTS[HostName(name)].title} there, not in this folder"
    for arguments in (("--dry-run",), ("--yes",), ("--yes",)):
        assert line in punchlist("install", name, *arguments, cwd=web).stdout
    assert [one for one in new_files(project) if one.startswith("packages")] == []
    assert line in punchlist("status", name, cwd=web).stdout
    told = json.loads(punchlist("install", name, "--yes", "--json", cwd=web).stdout)
    assert told["startIn"] == standing(punchlist, name, cwd=web)["project"]["startIn"] == str(project)
    assert any(note.startswith(line) for note in told["notes"])
    for said in (punchlist("install", name, "--yes"), punchlist("status", name)):
        assert ", not in this folder" not in said.stdout
    assert ", not in this folder" not in punchlist("install", name, "--user", "--yes", cwd=web).stdout


@pytest.mark.spec("X2")
def test_an_agent_that_looks_upwards_may_be_started_in_any_folder(punchlist: Cli, project: Path) -> None:
    """Codex does as far as a repository goes."""
    web = project / "packages" / "web"
    web.mkdir(parents=True)
    for name in ("codex", "opencode"):
        done = punchlist("install", name, "--yes", cwd=web).stdout
        assert f"The project is {project}: {HOSTS[HostName(name)].title} also finds it from this folder." in done
        assert standing(punchlist, name, cwd=web)["project"]["startIn"] is None
    (project / ".git").rmdir()
    (project / ".punchlist").mkdir()
    assert standing(punchlist, "codex", cwd=web)["project"]["startIn"] == str(project)
    assert "start Codex there" in punchlist("status", "codex", cwd=web).stdout
    assert standing(punchlist, "opencode", cwd=web)["project"]["startIn"] is None


# --- what was there --------------------------------------------------------------------------------------------------

SETTINGS = [
    b"",
    b"{}",
    b"{ }\n",
    b"\xef\xbb\xbf{}",
    b'{"a":1}',
    b'\xef\xbb\xbf{\r\n    "a": [1, 2] // x\r\n}',
    b'{\n\t"hooks": {\n\t\t"Stop": [ /* none */ ],\n\t},\n}\n',
    b"// nothing yet",
    '{"é": "\\u00e9 ü"}'.encode(),
]


@pytest.mark.spec("X2")
@pytest.mark.parametrize("content", SETTINGS)
def test_settings_in_any_shape_come_back_to_the_byte(
    project: Path, environment: dict[str, str], content: bytes
) -> None:
    (project / ".claude").mkdir()
    (project / ".claude" / "settings.json").write_bytes(content)
    (project / ".claude" / "settings.json").chmod(0o640)
    before = snapshot(project)
    there = here("claude-code", project, environment)
    do(there)
    after = (project / ".claude" / "settings.json").read_bytes()
    assert after.startswith(b"\xef\xbb\xbf") is content.startswith(b"\xef\xbb\xbf")
    assert (b"\r\n" in after) is (b"\r\n" in content)
    assert b"\n" not in after.replace(b"\r\n", b"") or b"\r\n" not in content
    assert there.plan_install(("punchlist",)).changes == ()
    do(there, undo=True)
    assert snapshot(project) == before


@pytest.mark.spec("X2")
def test_after_somebodys_edits_exactly_ours_is_taken_out(punchlist: Cli, project: Path) -> None:
    (project / ".codex").mkdir()
    config = project / ".codex" / "config.toml"
    config.write_text('model = "gpt"')
    punchlist("install", "codex", "--yes")
    config.write_text(f'# mine\n{config.read_text()}\n[hooks.state."x:stop:0:0"]\ntrusted_hash = "1"\n')
    hooks = project / ".codex" / "hooks.json"
    told = json.loads(hooks.read_text())
    told["hooks"]["Stop"].insert(0, {"hooks": [{"type": "command", "command": "say done"}]})
    hooks.write_text(json.dumps(told))
    undone = punchlist("uninstall", "codex", "--yes")
    assert "Edited since the installation" in undone.stdout
    assert config.read_text() == '# mine\nmodel = "gpt"\n\n[hooks.state."x:stop:0:0"]\ntrusted_hash = "1"\n'
    assert json.loads(hooks.read_text()) == {
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}
    }


@pytest.mark.spec("X2")
@pytest.mark.parametrize("name", NAMES)
def test_on_another_machine_it_is_taken_out_without_a_record(
    project: Path, environment: dict[str, str], tmp_path: Path, name: str
) -> None:
    do(here(name, project, environment), program=("/somewhere/else/punchlist",))
    elsewhere = {**environment, "HOME": str(tmp_path / "other home")}
    do(here(name, project, elsewhere), undo=True)
    assert new_files(project) == []


@pytest.mark.spec("X2")
def test_a_command_of_the_persons_own_is_kept_and_known_again(project: Path, environment: dict[str, str]) -> None:
    before = snapshot(project)
    there = here("codex", project, environment)
    do(there, program=("nix", "run", "tools"))
    assert there.plan_install(None).changes == ()
    assert "nix run tools hook stop --for codex" in (project / ".codex" / "hooks.json").read_text()
    (project / ".codex" / "hooks.json").write_text((project / ".codex" / "hooks.json").read_text() + "\n")
    do(there, undo=True)
    assert snapshot(project) == before


@pytest.mark.spec("X2")
def test_another_command_takes_the_place_of_the_one_before(project: Path, environment: dict[str, str]) -> None:
    before = snapshot(project)
    there = here("codex", project, environment)
    do(there, program=("nix", "run", "tools"))
    do(there, program=("docker", "run", "lists"))
    text = (project / ".codex" / "hooks.json").read_text()
    assert (text.count("docker run lists hook"), "nix" in text) == (4, False)
    assert standing_of(there) == {"installed"}
    do(there, undo=True)
    assert snapshot(project) == before


@pytest.mark.spec("X2")
def test_when_it_has_moved_it_is_brought_up_to_date_and_still_undone(
    project: Path, environment: dict[str, str]
) -> None:
    (project / ".mcp.json").write_text('{"mcpServers": {"other": {"command": "x"}}}')
    before = snapshot(project)
    there = here("claude-code", project, environment)
    do(there, program=("/old/punchlist",))
    (project / "note").write_text("theirs")
    do(there, program=("/new/punchlist",))
    text = (project / ".mcp.json").read_text() + (project / ".claude" / "settings.json").read_text()
    assert "/old/" not in text
    assert text.count("/new/punchlist") == 5
    do(there, undo=True)
    (project / "note").unlink()
    assert snapshot(project) == before


@pytest.mark.spec("X2")
def test_an_edit_between_two_installs_is_not_undone(project: Path, environment: dict[str, str]) -> None:
    there = here("gemini", project, environment)
    settings = project / ".gemini" / "settings.json"
    do(there, program=("/old/punchlist",))
    settings.write_text(settings.read_text().replace("{", '{\n  "theme": "mine",', 1))
    do(there, program=("/new/punchlist",))
    do(there, undo=True)
    assert json.loads(settings.read_text()) == {"theme": "mine"}


THEIRS = {
    ".claude/settings.json": '{"a": [ ],\n // mine\n}',
    ".codex/config.toml": 'model = "gpt"',
    ".codex/hooks.json": '{ "hooks": { "Stop": [ ] } }',
    ".gemini/settings.json": '{\r\n\t"theme": "x", // my own\r\n}',
    "opencode.json": '{\n  "theme": "dark",\n}\n',
}
CHOSEN = [
    ("claude-code", ".claude/settings.json", '"timeout": 20', '"timeout": 60'),
    ("codex", ".codex/hooks.json", '"timeout": 20', '"timeout": 60'),
    ("codex", ".codex/config.toml", "required = true", "required = false"),
    ("gemini", ".gemini/settings.json", '"timeout": 20000', '"timeout": 60000'),
    ("opencode", "opencode.json", '"enabled": true', '"enabled": false'),
]


@pytest.mark.spec("X2")
@pytest.mark.parametrize(("name", "file", "ours", "chosen"), CHOSEN)
def test_what_a_person_chose_in_our_entries_stays(
    punchlist: Cli, project: Path, name: str, file: str, ours: str, chosen: str
) -> None:
    (project / file).parent.mkdir(exist_ok=True)
    (project / file).write_bytes(THEIRS[file].encode())
    before = snapshot(project)
    punchlist("install", name, "--yes", "--command", "/old/punchlist")
    written = (project / file).read_bytes()
    (project / file).write_bytes(written.replace(ours.encode(), chosen.encode()))
    edited = snapshot(project)
    assert standing(punchlist, name)["project"]["state"] == "installed"
    assert "already installed" in punchlist("install", name, "--yes").stdout
    assert snapshot(project) == edited
    moved = punchlist("install", name, "--yes", "--command", "/new/punchlist")
    assert moved.returncode == 0, moved.stderr
    text = (project / file).read_text()
    assert ("/new/punchlist" in text, "/old/punchlist" in text) == (True, False)
    assert (chosen in text, ours in text) == (True, False)
    (project / file).write_bytes((project / file).read_bytes().replace(b'"timeout": 60', b'"timeout": 90'))
    assert "Edited since the installation" not in punchlist("uninstall", name, "--yes").stdout
    assert snapshot(project) == before


@pytest.mark.spec("X2")
def test_what_we_made_stays_if_somebody_else_moved_in(project: Path, environment: dict[str, str]) -> None:
    there = here("claude-code", project, environment)
    do(there)
    (project / ".claude" / "settings.local.json").write_text("{}")
    do(there, undo=True)
    assert new_files(project) == [".claude/settings.local.json"]


@pytest.mark.spec("X2")
def test_a_plugin_that_is_not_ours_is_left_alone(project: Path, environment: dict[str, str]) -> None:
    plugin = project / ".opencode" / "plugins" / "punchlist.js"
    plugin.parent.mkdir(parents=True)
    plugin.write_text("// my own plugin for punchlist\n")
    before = snapshot(project)
    there = here("opencode", project, environment)
    with pytest.raises(ConfigError, match="was not made by this command"):
        there.plan_install(("punchlist",))
    assert there.plan_uninstall().changes == ()
    assert snapshot(project) == before


@pytest.mark.spec("X2")
def test_a_file_in_which_there_was_nothing_is_there_again(project: Path, environment: dict[str, str]) -> None:
    plugin = project / ".opencode" / "plugins" / "punchlist.js"
    plugin.parent.mkdir(parents=True)
    plugin.write_text("")
    before = snapshot(project)
    there = here("opencode", project, environment)
    assert there.plan_uninstall().changes == ()
    do(there)
    do(there, undo=True)
    assert snapshot(project) == before


# --- what goes wrong -------------------------------------------------------------------------------------------------


@pytest.mark.spec("X2")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{\n  "hooks": null\n}', ", line 2: hooks must be an object, got null. Correct or remove it"),
        (b'{"a": ', ", line 1: is not valid JSON: Expecting value (column 7)"),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "is nested too deeply. Nothing was changed"),
        (b"\xff\xfe{\x00}\x00", "is not UTF-8 text (byte 1)"),
        (b'{"a": "\xe9"}', "is not UTF-8 text (byte 8)"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_and_nothing_changes(
    punchlist: Cli, project: Path, content: bytes, message: str
) -> None:
    (project / ".codex").mkdir()
    (project / ".codex" / "hooks.json").write_bytes(content)
    before = snapshot(project)
    done = punchlist("install", "codex", "--yes", "--json")
    assert done.returncode == 1
    told = json.loads(done.stdout)["error"]
    assert told["code"] == "config"
    assert f"{project}/.codex/hooks.json" in told["message"]
    assert message in told["message"]
    assert snapshot(project) == before


@pytest.mark.spec("X2")
def test_all_files_are_changed_or_none(
    project: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / ".mcp.json").write_text("{}")
    there = here("claude-code", project, environment)
    before = snapshot(project)
    put = files._put

    def fails_for_servers(target: Path, staged: Path | None) -> None:
        if target.name == ".mcp.json" and not failed:
            failed.append(target)
            raise OSError(28, "No space left on device", str(target))
        put(target, staged)

    monkeypatch.setattr(files, "_put", fails_for_servers)
    failed = list[Path]()
    with pytest.raises(
        ConfigError, match=r"mcp.json: cannot be written \(No space left on device\). Nothing was changed"
    ):
        do(there)
    assert snapshot(project) == before
    do(there)
    failed.clear()
    installed = snapshot(project)
    with pytest.raises(ConfigError, match="Nothing was changed"):
        do(there, undo=True)
    assert snapshot(project) == installed
    do(there, undo=True)
    assert snapshot(project) == before


@pytest.mark.spec("X2")
def test_a_read_only_file_is_respected(project: Path, environment: dict[str, str]) -> None:
    (project / ".mcp.json").write_text("{}")
    (project / ".mcp.json").chmod(0o444)
    before = snapshot(project)
    with pytest.raises(ConfigError, match="is read-only"):
        do(here("claude-code", project, environment))
    assert snapshot(project) == before


@pytest.mark.spec("X2")
@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only to root")
def test_a_read_only_folder_is_refused(project: Path, environment: dict[str, str]) -> None:
    project.chmod(0o555)
    try:
        with pytest.raises(ConfigError, match="Nothing was changed"):
            do(here("claude-code", project, environment))
        assert new_files(project) == []
    finally:
        project.chmod(0o755)


@pytest.mark.spec("X2")
def test_links_are_followed_and_stay(
    punchlist: Cli, project: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    dotfiles = tmp_path / "dotfiles"
    dotfiles.mkdir()
    (dotfiles / "settings.json").write_text('{"a": 1}')
    (project / ".gemini").mkdir()
    link = project / ".gemini" / "settings.json"
    link.symlink_to(dotfiles / "settings.json")
    there = here("gemini", project, environment)
    do(there)
    assert link.is_symlink()
    assert "AfterAgent" in (dotfiles / "settings.json").read_text()
    shown = punchlist("uninstall", "gemini", "--dry-run").stdout
    assert f"leads out of the project, to {dotfiles / 'settings.json'}:" in shown
    do(there, undo=True)
    assert link.is_symlink()
    assert (dotfiles / "settings.json").read_text() == '{"a": 1}'
    (dotfiles / "settings.json").unlink()
    with pytest.raises(ConfigError, match=r"is a link to .*, which does not exist"):
        do(there)
    link.unlink()
    link.symlink_to(link)
    with pytest.raises(ConfigError, match="cannot be read"):
        do(there)
    link.unlink()
    link.mkdir()
    with pytest.raises(ConfigError, match="is not a file"):
        do(there)


@pytest.mark.spec("X2")
def test_somebody_who_writes_meanwhile_is_not_overwritten(project: Path, environment: dict[str, str]) -> None:
    there = here("claude-code", project, environment)
    (project / ".mcp.json").write_text("{}")
    plan = there.plan_install(("punchlist",))
    (project / ".mcp.json").write_text('{"mine": 1}')
    before = snapshot(project)
    with pytest.raises(Conflict, match="another program changed it meanwhile"):
        there.apply(plan)
    assert snapshot(project) == before
    assert standing_of(there) == {"missing"}


@pytest.mark.spec("X2")
def test_two_at_once_install_it_once(punchlist: Cli, project: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: punchlist("install", "claude-code", "--yes", "--json"), range(4)))
    assert [one.returncode for one in done] == [0] * 4, [one.stderr for one in done]
    assert (project / ".claude" / "settings.json").read_text().count("hook stop") == 1
    assert sorted(len(json.loads(one.stdout)["changes"]) for one in done) == [0, 0, 0, 2]
    punchlist("uninstall", "claude-code", "--yes")
    assert new_files(project) == []


@pytest.mark.spec("X2")
def test_a_large_file_is_no_trouble(project: Path, environment: dict[str, str], tmp_path: Path) -> None:
    history = {f"/project/{number}": {"history": [{"display": "do " * 300}] * 20} for number in range(600)}
    content = json.dumps({"projects": history, "numStartups": 7}, indent=2).encode()
    assert len(content) > 10_000_000
    (tmp_path / "home").mkdir()
    servers = tmp_path / "home" / ".claude.json"
    servers.write_bytes(content)
    there = here("claude-code", project, environment, user=True)
    do(there)
    assert json.loads(servers.read_bytes())["mcpServers"]["punchlist"]
    do(there, undo=True)
    assert servers.read_bytes() == content


@pytest.mark.spec("X2")
def test_outside_of_a_project_it_says_so_only_at_home(
    punchlist: Cli, environment: dict[str, str], tmp_path: Path
) -> None:
    home = Path(environment["HOME"])
    home.mkdir()
    done = punchlist("install", "codex", "--yes", cwd=home)
    assert done.returncode == 1
    assert "--user" in done.stderr
    plain = tmp_path / "plain"
    plain.mkdir()
    assert punchlist("install", "codex", "--yes", cwd=plain).returncode == 0
    assert new_files(plain) == FILES["codex"]


@pytest.mark.spec("X2")
def test_a_home_that_is_not_there_or_cannot_be_used_is_told(punchlist: Cli, project: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = punchlist("install", "codex", "--yes", env={"HOME": str(tmp_path / "file")})
    assert done.returncode == 1
    assert "cannot" in done.stderr
    assert new_files(project) == []


@pytest.mark.spec("X2")
@pytest.mark.parametrize("command", ["", "  ", "a\nb", "'unclosed"])
def test_a_command_that_is_none_is_refused(punchlist: Cli, project: Path, command: str) -> None:
    done = punchlist("install", "codex", "--yes", "--command", command)
    assert done.returncode == 1
    assert "--command" in done.stderr
    assert new_files(project) == []


# --- status ----------------------------------------------------------------------------------------------------------


def standing(punchlist: Cli, name: str, **extra: Any) -> dict[str, Any]:
    done = punchlist("status", name, "--json", **extra)
    assert done.returncode == 0, done.stderr
    [agent] = json.loads(done.stdout)["agents"]
    return {scope["scope"]: scope for scope in agent["scopes"]} | {"program": agent["program"]}


@pytest.mark.spec("X2")
def test_status_tells_what_is_there_and_what_is_missing(punchlist: Cli, project: Path, tmp_path: Path) -> None:
    assert standing(punchlist, "codex")["project"]["state"] == "not installed"
    punchlist("install", "codex", "--yes")
    found = standing(punchlist, "codex")
    assert (found["project"]["state"], found["user"]["state"]) == ("installed", "not installed")
    assert found["project"]["commandMissing"] == []
    (project / ".codex" / "config.toml").write_text("")
    assert standing(punchlist, "codex")["project"]["state"] == "partly"
    said = punchlist("status", "codex").stdout
    assert f"missing: mcp_servers.punchlist in {project}/.codex/config.toml" in said
    punchlist("install", "codex", "--yes", "--command", str(tmp_path / "gone" / "punchlist"))
    assert standing(punchlist, "codex")["project"]["commandMissing"] == [str(tmp_path / "gone" / "punchlist")]
    (project / ".codex" / "hooks.json").write_text("{")
    assert "is not valid JSON" in punchlist("status").stdout


@pytest.mark.spec("X2")
def test_status_tells_of_the_hosts_program_and_of_what_hooks_complained_of(
    punchlist: Cli, project: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    program = tmp_path / "bin" / "gemini"
    program.parent.mkdir()
    program.write_text("")
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{environment['PATH']}"
    assert standing(punchlist, "gemini", env={"PATH": path})["program"] == str(program)
    (project / ".punchlist").mkdir()
    (project / ".punchlist" / "hooks.log").write_text(
        "".join(f"2026-01-0{day} ERROR it \x1b[31mbroke\n" for day in range(1, 6))
    )
    said = punchlist("status", "gemini").stdout
    assert f"{project}/.punchlist/hooks.log: 5 lines, the last:" in said
    assert "\x1b" not in said
    assert "2026-01-02" not in said
    assert "2026-01-03 ERROR" in said


@pytest.mark.spec("X2")
def test_status_tells_what_codex_does_not_trust_yet(punchlist: Cli, project: Path, environment: dict[str, str]) -> None:
    hooks = project / ".codex" / "hooks.json"
    hooks.parent.mkdir()
    hooks.write_text('{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "lint"}]}]}}')
    punchlist("install", "codex", "--yes")
    told = standing(punchlist, "codex")["project"]["distrust"]
    assert [one.partition(" yet")[0] for one in told] == [
        "Codex does not trust this project",
        "4 of 4 hooks are not accepted in Codex",
    ]
    states = ("stop:1:0", "user_prompt_submit:0:0", "session_start:0:0")
    config = Path(environment["HOME"]) / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text(
        f'[projects."{project}"]\ntrust_level = "trusted"\n'
        + "".join(f'[hooks.state."{hooks}:{state}"]\ntrusted_hash = "sha256:1"\n' for state in states)
    )
    [told] = standing(punchlist, "codex")["project"]["distrust"]
    assert told.startswith("1 of 4 hooks are not accepted")
    assert told in punchlist("status").stdout


@pytest.mark.spec("X2")
def test_hooks_that_the_person_switched_off_are_told_of(punchlist: Cli, project: Path) -> None:
    (project / ".gemini").mkdir()
    (project / ".gemini" / "settings.json").write_text('{"hooksConfig": {"enabled": false}}')
    done = punchlist("install", "gemini", "--yes", "--json")
    assert any("hooksConfig.enabled disables hooks" in note for note in json.loads(done.stdout)["notes"])
    assert "hooks are disabled" in punchlist("status", "gemini").stdout


@pytest.mark.spec("X2")
def test_whoever_installs_it_twice_is_told(project: Path, environment: dict[str, str]) -> None:
    do(here("codex", project, environment, user=True))
    there = here("codex", project, environment)
    assert any("also installed for you" in note for note in there.notes(there.plan_install(("punchlist",))))
    shutil.rmtree(Path(environment["HOME"]) / ".codex")
    assert not any("also installed" in note for note in there.notes(there.plan_install(("punchlist",))))


@pytest.mark.spec("X2")
@pytest.mark.parametrize("name", NAMES)
def test_status_tells_whoever_has_installed_it_twice(punchlist: Cli, environment: dict[str, str], name: str) -> None:
    Path(environment["HOME"]).mkdir()
    twice = "Punchlist is installed for you and for this project."
    punchlist("install", name, "--yes")
    assert hooks_twice(punchlist, name) == []
    assert twice not in punchlist("status", name).stdout
    punchlist("install", name, "--user", "--yes")
    expected = [f"hooks.{at}" for at in EVENTS[name]] if name in EVENTS else ["plugin"]
    assert hooks_twice(punchlist, name) == expected
    [line] = [line for line in punchlist("status", name).stdout.splitlines() if twice in line]
    assert "hooks can run and count twice: uninstall one of them." in line
    punchlist("uninstall", name, "--yes")
    assert hooks_twice(punchlist, name) == []


@pytest.mark.spec("X2")
def test_one_file_that_is_the_users_and_the_projects_is_not_there_twice(punchlist: Cli, project: Path) -> None:
    home = {"CODEX_HOME": str(project / ".codex")}
    punchlist("install", "codex", "--yes", env=home)
    found = standing(punchlist, "codex", env=home)
    assert (found["project"]["state"], found["user"]["state"]) == ("installed", "installed")
    assert hooks_twice(punchlist, "codex", env=home) == []


@pytest.mark.spec("X2")
def test_a_server_that_is_there_twice_is_started_once(punchlist: Cli, project: Path) -> None:
    punchlist("install", "codex", "--yes")
    punchlist("install", "codex", "--user", "--yes")
    (project / ".codex" / "hooks.json").unlink()
    assert standing(punchlist, "codex")["project"]["state"] == "partly"
    assert hooks_twice(punchlist, "codex") == []


def hooks_twice(punchlist: Cli, name: str, **extra: Any) -> list[str]:
    [agent] = json.loads(punchlist("status", name, "--json", **extra).stdout)["agents"]
    found: list[str] = agent["hooksTwice"]
    return found


@pytest.mark.spec("X2")
def test_what_somebody_took_out_by_hand_is_not_on_record_any_longer(punchlist: Cli, project: Path) -> None:
    punchlist("install", "gemini", "--yes", "--command", "another-punchlist")
    shutil.rmtree(project / ".gemini")
    assert "nothing to remove" in punchlist("uninstall", "gemini").stdout
    assert "another-punchlist" not in punchlist("install", "gemini", "--dry-run").stdout
