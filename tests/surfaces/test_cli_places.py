"""Which database and which session: flag, environment, project's file, user's file, in this order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.conftest import Cli
from tests.faults.script import Script


def _session(punchlist: Cli, *arguments: str, **extra: object) -> str:
    done = punchlist("todos", *arguments, "--json", **extra)
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["session"])


def test_the_nearest_word_decides_on_the_session(punchlist: Cli, project: Path, environment: dict[str, str]) -> None:
    user = Path(environment["HOME"]) / ".config" / "punchlist" / "punchlist.toml"
    user.parent.mkdir(parents=True)
    user.write_text('session = "of-the-user"\n')
    assert _session(punchlist) == "of-the-user"
    (project / "punchlist.toml").write_text('session = "of-the-project"\n')
    assert _session(punchlist) == "of-the-user"
    assert punchlist("trust", "--yes").returncode == 0
    assert _session(punchlist) == "of-the-project"
    env = {"PUNCHLIST_SESSION": "of-the-shell"}
    assert _session(punchlist, env=env) == "of-the-shell"
    assert _session(punchlist, "--session", "of-the-flag", env=env) == "of-the-flag"


@pytest.mark.spec("W6")
def test_a_project_keeps_its_list_in_its_own_folder_and_out_of_version_control(punchlist: Cli, project: Path) -> None:
    inside = project / "src" / "deep"
    inside.mkdir(parents=True)
    punchlist("todos", "add", "Mine", cwd=inside)
    assert (project / ".punchlist" / "punchlist.db").exists()
    assert (project / ".punchlist" / ".gitignore").read_text() == "*\n"


def test_two_projects_are_apart_also_in_one_database(punchlist: Cli, project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "project"
    (other / ".git").mkdir(parents=True)
    for env in ({}, {"PUNCHLIST_DATABASE_URL": f"sqlite:///{tmp_path}/shared.db"}):
        assert "Here" in punchlist("todos", "add", "Here", env=env).stdout
        assert punchlist("todos", cwd=other, env=env).stdout == "No todos.\n"


def test_outside_of_any_project_the_list_is_the_users(
    punchlist: Cli, tmp_path: Path, environment: dict[str, str]
) -> None:
    nowhere = tmp_path / "nowhere"
    nowhere.mkdir()
    punchlist("todos", "add", "Buy milk", cwd=nowhere)
    assert list(nowhere.iterdir()) == []
    kept = Path(environment["HOME"]) / ".local" / "share" / "punchlist" / "punchlist.db"
    assert kept.exists()
    elsewhere = {"XDG_DATA_HOME": str(tmp_path / "data")}
    assert punchlist("db", "path", cwd=nowhere, env=elsewhere).stdout == f"{tmp_path}/data/punchlist/punchlist.db\n"


@pytest.mark.parametrize("written", ["lists.db", "sqlite:///lists.db"])
def test_a_path_in_the_projects_settings_is_the_same_from_every_folder(
    punchlist: Cli, project: Path, written: str
) -> None:
    (project / "punchlist.toml").write_text(f'database = "{written}"\n')
    (project / "src").mkdir()
    here, deeper = (punchlist("db", "path", cwd=folder).stdout for folder in (project, project / "src"))
    assert here == deeper == f"{project}/lists.db\n"


@pytest.mark.parametrize("address", ["sqlite:/tmp/x.db", "file:/tmp/x.db", "~/x.db"])
def test_an_address_that_looks_like_another_kind_of_path_makes_no_folder_of_that_name(
    punchlist: Cli, project: Path, address: str
) -> None:
    punchlist("todos", env={"PUNCHLIST_DATABASE_URL": address})
    assert [path.name for path in project.iterdir() if path.name != ".git"] == []


@pytest.mark.spec("X7")
def test_the_same_commands_work_on_a_server(punchlist: Cli, postgres_url: str) -> None:
    env = {"PUNCHLIST_DATABASE_URL": postgres_url, "PUNCHLIST_SESSION": "s"}
    assert "○ Over there" in punchlist("todos", "add", "Over there", env=env).stdout
    assert "todos add" in punchlist("log", env=env).stdout
    assert punchlist("db", "check", env=env).returncode == 0
    script = Script(postgres_url)
    assert [task.content for task in script.lists().checklist] == ["Over there"]
    script.close()
