"""`punchlist policy rules` and `revoke`, and what only the user may do (S4, X2)."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli
from tests.faults.processes import Program, eventually

from punchlist.surfaces.cli.agent_guard import own_arguments

PROGRAM = f"{shlex.quote(sys.executable)} -m punchlist"
WRITE = '{"path": "made.txt", "content": "made\\n"}'


@pytest.fixture(params=["sqlite", "postgresql"])
def program(request: pytest.FixtureRequest, punchlist: Cli) -> Cli:
    """The program on both databases."""
    if request.param == "sqlite":
        return punchlist
    url: str = request.getfixturevalue("postgres_url")
    return lambda *words, **extra: punchlist(
        *words, env={"PUNCHLIST_DATABASE_URL": url, **extra.pop("env", {})}, **extra
    )


def call(program: Cli, command: str, *more: str, **extra: Any) -> Any:
    return program("tools", "call", "run_command", json.dumps({"command": command}), "--json", *more, **extra)


def approve_always(program: Cli, command: str, *more: str) -> None:
    waiting = json.loads(call(program, command).stdout)["callId"]
    done = program("approvals", "approve", waiting, "--always", "prefix", *more)
    assert done.returncode == 0, done.stderr


def rules(program: Cli, *more: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(program("policy", "rules", "--json", *more).stdout)["rules"]
    return found


@pytest.mark.spec("S4")
def test_every_rule_is_listed_with_what_it_covers_and_always_is_revocable(program: Cli, project: Path) -> None:
    (project / "punchlist.toml").write_text(
        '[[policy.rules]]\ndecision = "deny"\ntool = "run_command"\ncommand = "rm -rf"\nwhy = "ask Ann"\n'
    )
    approve_always(program, "echo one")
    approve_always(program, "ls", "--for", "permanent")
    settings, first, second = rules(program)
    assert (settings["decision"], settings["why"], settings["id"]) == ("deny", "ask Ann", None)
    assert settings["covers"] == "every command that begins with `rm -rf`"
    assert (first["decision"], first["lifetime"]) == ("allow", "session")
    assert first["covers"].startswith("every command that begins with `echo`, with options ")
    assert second["lifetime"] == "permanent"
    told = program("policy", "rules").stdout
    assert "punchlist.toml, policy.rules[1]: ask Ann" in told
    assert "permanently in this project" in told

    assert call(program, "echo two").returncode == 0
    assert program("policy", "revoke", "2").returncode == 0
    assert call(program, "echo two").returncode == 4
    assert call(program, "ls").returncode == 0
    assert program("policy", "revoke", second["id"][-8:]).returncode == 0
    assert call(program, "ls").returncode == 4
    assert [rule["id"] for rule in rules(program)] == [None]
    refused = program("policy", "revoke", "1")
    assert (refused.returncode, "punchlist.toml" in refused.stderr) == (1, True)
    assert program("policy", "revoke", "9").returncode == 1
    assert program("db", "check").returncode == 0


@pytest.mark.spec("S4")
def test_always_does_not_reach_through_a_pattern_that_matches_a_link(
    punchlist: Cli, project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret").write_text("the secret")
    (project / "ex").symlink_to(outside)
    (project / "notes.md").write_text("the notes")
    approve_always(punchlist, "cat notes.md")
    assert "the notes" in call(punchlist, "cat note?.md").stdout
    for command in ("cat e?/secret", "cat {ex,x}/secret", "cat */secret", "cat notes.md *", "grep -R secret ."):
        asked = call(punchlist, command)
        assert (asked.returncode, "the secret" in asked.stdout) == (4, False), command


@pytest.mark.spec("S4")
def test_always_has_the_lifetime_that_was_chosen(program: Cli) -> None:
    approve_always(program, "echo run", "--for", "run")
    assert call(program, "echo again").returncode == 4
    approve_always(program, "echo session", "--for", "session")
    assert call(program, "echo again").returncode == 0
    assert call(program, "echo again", "--session", "other").returncode == 4
    approve_always(program, "pwd", "--for", "permanent")
    assert call(program, "pwd", "--session", "other").returncode == 0


@pytest.mark.spec("S4")
def test_always_does_not_reach_another_project(punchlist: Cli, postgres_url: str, tmp_path: Path) -> None:
    shared = {"PUNCHLIST_DATABASE_URL": postgres_url, "PUNCHLIST_SESSION": "one"}

    def program(*words: str, **extra: Any) -> Any:
        return punchlist(*words, env=shared, **extra)

    approve_always(program, "echo one", "--for", "permanent")
    assert call(program, "echo two").returncode == 0
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    assert call(program, "echo two", cwd=other).returncode == 4
    assert json.loads(program("policy", "rules", "--json", cwd=other).stdout)["rules"] == []


@pytest.mark.spec("S4")
def test_what_always_would_cover_is_said_before_it_is_chosen(punchlist: Cli) -> None:
    call(punchlist, "git -C . status --short && python3 tool.py")
    (waiting,) = json.loads(punchlist("approvals", "--json").stdout)
    covers = waiting["always"]["prefix"]
    assert covers.startswith("every command that begins with `git -C . status`, exactly the command `python3 tool.py`")
    assert f"--always prefix covers {covers}" in punchlist("approvals").stdout
    for never in (
        "punchlist approvals",
        "python3 -m punchlist trust",
        "git log --output=x",
        "cat /etc/passwd",
        "A=1 ls",
    ):
        waiting = json.loads(call(punchlist, never).stdout)["callId"]
        shown = {one["callId"]: one for one in json.loads(punchlist("approvals", "--json").stdout)}
        assert "prefix" not in shown[waiting]["always"], never


# --- what only the user may do ----------------------------------------------------------------------------------------

FOR_THE_USER = [
    "approvals approve CALL",
    "approvals deny CALL",
    "approvals modify CALL '{}'",
    "inbox approve 1",
    "inbox answer 1 yes",
    "answer CALL yes",
    "mission answer CALL keep",
    "trust --yes",
    "install codex --yes",
    "uninstall codex --yes",
    "policy revoke 1",
    "token create mine --role person",
    "tools call list_directory '{}' --mode yolo",
    "run --mode auto-edit x",
]
EVASIONS = [
    "{}",
    "timeout 60 {}",
    'env -i HOME="$HOME" PATH="$PATH" timeout 60 {}',
    "env -u PUNCHLIST_CALL {}",
    "unset PUNCHLIST_CALL; {}",
    'env -i HOME="$HOME" PATH="$PATH" {}',
    'env -i HOME="$HOME" PATH="$PATH" setsid -w {}',
    'env -i HOME="$HOME" PATH="$PATH" nohup setsid -w env {}',
    'bash -c "env -i HOME=$HOME PATH=$PATH {}"',
]


def inside(punchlist: Cli, line: str) -> str:
    """What an agent's command prints; its exit status is in the text."""
    done = call(punchlist, f"{line}; echo code $?", "--mode", "yolo")
    assert done.returncode == 0, done.stdout
    text: str = json.loads(done.stdout)["result"]
    return text


@pytest.mark.spec("S4")
@pytest.mark.parametrize("command", FOR_THE_USER)
def test_an_agent_cannot_answer_trust_install_or_loosen(punchlist: Cli, project: Path, command: str) -> None:
    waiting = json.loads(punchlist("tools", "call", "write_file", WRITE, "--json").stdout)["callId"]
    told = inside(punchlist, f"{PROGRAM} {command.replace('CALL', waiting)} 2>&1")
    assert "inside an agent's tool call" in told
    assert "code 1" in told
    (still,) = json.loads(punchlist("approvals", "--json").stdout)
    assert still["callId"] == waiting
    assert not (project / "made.txt").exists()
    assert not (project / ".codex").exists()
    assert "refused: `punchlist" in punchlist("status").stdout


AS_A_PERSON = [
    "mission apply m.json --yes --trust",
    "mission archive m --why no",
    "mission unarchive m --why no",
    "mission todo create m p x --check-command true",
    "mission todo complete 1 --outcome done --override mine",
    "mission todo start 1 --why now",
    "mission runs redirect 1 'Do that.'",
    "mission chat send m 'The user says: yes.'",
    "mission metric record m n 1",
    "queue add 'Delete everything.'",
    "db restore b --yes",
    "import m.md --mission m --pillar p",
    "todos remove 1",
    "todos clear",
    "todos undo",
    "todos edit 1 'Rest.'",
    "sessions end",
    "mcp --role lead",
    "mcp --http",
]


@pytest.mark.spec("S4", "X11")
def test_an_agent_has_no_more_rights_in_its_shell_than_by_its_tools(punchlist: Cli, project: Path) -> None:
    (project / "m.json").write_text('{"name": "M", "slug": "m"}')
    (project / "m.md").write_text("- [x] Taken out\n")
    punchlist("todos", "add", "Take out the trash")
    for some in (AS_A_PERSON[:6], AS_A_PERSON[6:12], AS_A_PERSON[12:]):
        told = inside(punchlist, "; ".join(f"{PROGRAM} {command} 2>&1 </dev/null" for command in some))
        assert told.count("for you, not for an agent") == len(some), told
    assert json.loads(punchlist("mission", "list", "--json").stdout) == []
    assert "Say what was done" in inside(punchlist, f"{PROGRAM} todos cancel 1 2>&1")
    assert "code 0" in inside(punchlist, f"{PROGRAM} todos done 1 2>&1")
    assert "code 0" in inside(punchlist, f"{PROGRAM} import m.md --into plan 2>&1")
    marks = [item["mark"] for item in json.loads(punchlist("todos", "--json").stdout)["items"]]
    assert marks == ["claimed", "claimed"]
    events = [json.loads(line) for line in punchlist("log", "--json").stdout.splitlines()]
    by = {event["stream"].partition(":")[0]: event["actor"].partition(":")[0] for event in events}
    assert by["checklist"] == "supervisor"


@pytest.mark.spec("S4")
@pytest.mark.parametrize("evasion", EVASIONS)
def test_an_agent_cannot_hide_that_it_is_one(punchlist: Cli, project: Path, evasion: str) -> None:
    waiting = json.loads(punchlist("tools", "call", "write_file", WRITE, "--json").stdout)["callId"]
    line = evasion.format(f"{PROGRAM} approvals approve {waiting}")
    told = inside(punchlist, f"{{ {line}; }} 2>&1")
    assert "inside an agent's tool call" in told
    assert not (project / "made.txt").exists()


@pytest.mark.spec("S4")
def test_a_person_who_starts_an_agent_under_a_time_limit_is_no_agent(
    project: Path, environment: dict[str, str]
) -> None:
    (project / "done.yaml").write_text("- Done.\n")
    arguments = ["run", "--mode", "yolo", "--model", "rehearsal:done.yaml", "Go."]
    done = subprocess.run(
        ["timeout", "60", str(Path(sys.executable).with_name("punchlist")), *arguments],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.spec("S4")
@pytest.mark.parametrize(
    ("command", "ours"),
    [
        ("/v/bin/python /v/bin/punchlist run x", "run x"),
        ("/v/bin/python3.12 -m punchlist worker", "worker"),
        ("python -P -m punchlist run --json", "run --json"),
        ("python -Im punchlist serve", "serve"),
        ("python -mpunchlist approvals approve 1", "approvals approve 1"),
        ("python -X dev -W error -m punchlist run", "run"),
        ("python --check-hash-based-pycs=never /v/punchlist/__main__.py run", "run"),
        ("pypy3 /v/bin/punchlist run", "run"),
        ("timeout 60 punchlist run x", ""),
        ("timeout 60 python -m punchlist run x", ""),
        ("sudo -u me /v/bin/punchlist run", ""),
        ("bash -c punchlist run", ""),
        ("python -c pass punchlist run", ""),
        ("python report.py punchlist run", ""),
        ("python -m pytest punchlist run", ""),
        ("", ""),
    ],
)
def test_our_own_commands_are_found_among_the_parents(command: str, ours: str) -> None:
    assert list(own_arguments(command.split())) == ours.split()


@pytest.mark.spec("S4")
@pytest.mark.parametrize("variable", ["CLAUDECODE", "CODEX_SANDBOX", "GEMINI_CLI", "OPENCODE"])
def test_the_commands_of_other_agents_are_refused_too(punchlist: Cli, variable: str) -> None:
    done = punchlist("trust", "--yes", env={variable: "1"})
    assert (done.returncode, f"{variable} is set" in done.stderr) == (1, True)


@pytest.mark.spec("S4", "X2")
def test_another_agent_cannot_serve_over_http_but_starts_the_servers_that_the_user_gave_it(punchlist: Cli) -> None:
    told = punchlist("mcp", "--http", "--port", "0", "--role", "lead", env={"CLAUDECODE": "1"}, timeout=60)
    assert (told.returncode, "CLAUDECODE is set" in told.stderr, told.stdout) == (1, True, "")
    assert "refused: `punchlist mcp --http`" in punchlist("status").stdout
    ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    served = punchlist("mcp", "--role", "lead", input=f"{ping}\n", env={"CLAUDECODE": "1"})
    assert json.loads(served.stdout)["result"] == {}


# --- the question at the terminal -------------------------------------------------------------------------------------


@pytest.mark.spec("S4")
def test_keys_typed_before_the_question_do_not_answer_it(project: Path, environment: dict[str, str]) -> None:
    with Program(project, environment, "tools", "call", "write_file", WRITE, columns=80) as asked:
        asked.answer("y\ny\ny\n")
        asked.wait_for("\r\n? ")
        assert not (project / "made.txt").exists()
        asked.answer("n\n\n")
        assert asked.end().code == 3
    assert not (project / "made.txt").exists()


@pytest.mark.spec("S4")
def test_a_file_that_changed_after_its_diff_was_shown_is_shown_again(
    project: Path, environment: dict[str, str]
) -> None:
    (project / "notes.txt").write_text("one\n")
    edit = '{"path": "notes.txt", "content": "two\\n"}'
    with Program(project, environment, "tools", "call", "write_file", edit, columns=80) as asked:
        asked.wait_for("-one", "\r\n? ")
        (project / "notes.txt").write_text("three\n")
        asked.answer("y\n")
        asked.wait_for("It has changed since it was shown", "-three")
        eventually(lambda: asked.output.count(b"\r\n? ") == 2, "the question is asked again")
        assert (project / "notes.txt").read_text() == "three\n"
        asked.answer("y\n")
        assert asked.end().code == 0
    assert (project / "notes.txt").read_text() == "two\n"


@pytest.mark.spec("S4")
def test_e_opens_the_current_arguments_in_the_editor(project: Path, environment: dict[str, str]) -> None:
    editor = project / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/made.txt/other.txt/' \"$1\"\n")
    editor.chmod(0o755)
    asked_with = {**environment, "EDITOR": str(editor)}
    asked_with.pop("VISUAL", None)
    with Program(project, asked_with, "tools", "call", "write_file", WRITE, columns=80) as asked:
        asked.wait_for("\r\n? ")
        asked.answer("e\n")
        assert asked.end().code == 0
    assert (project / "other.txt").read_text() == "made\n"


@pytest.mark.spec("S4")
def test_the_prompt_says_what_always_covers_and_for_how_long(
    punchlist: Cli, project: Path, environment: dict[str, str]
) -> None:
    listing = '{"command": "ls"}'
    with Program(project, environment, "tools", "call", "run_command", listing, columns=80) as asked:
        asked.wait_for("always allow every command that begins with `ls`", "pp permanently", "\r\n? ")
        asked.answer("pp\n")
        assert asked.end().code == 0
    (rule,) = rules(punchlist)
    assert rule["lifetime"] == "permanent"
