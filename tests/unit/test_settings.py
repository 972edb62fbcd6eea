"""Where settings come from, which one wins, and what is said about a bad one (TRUST 23)."""

from __future__ import annotations

from pathlib import Path

import pytest

from punchlist.config import Settings, load, project_root
from punchlist.errors import ConfigError
from punchlist.trust import Trust


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment with a home of its own and nothing of ours in it."""
    (tmp_path / "home/.config/punchlist").mkdir(parents=True)
    return {"HOME": str(tmp_path / "home")}


def users_file(home: dict[str, str]) -> Path:
    return Path(home["HOME"], ".config/punchlist/punchlist.toml")


def outside(project: Path) -> Path:
    """A folder that belongs to no project."""
    folder = project.parent / "elsewhere"
    folder.mkdir()
    return folder


def complaint(project: Path, home: dict[str, str]) -> str:
    with pytest.raises(ConfigError) as refused:
        load(environment=home, cwd=project)
    return str(refused.value)


def test_the_flag_beats_the_environment_beats_the_projects_file_beats_the_users(
    project: Path, home: dict[str, str]
) -> None:
    flags = {"session": "flag"}
    env = {**home, "PUNCHLIST_SESSION": "environment"}
    users_file(home).write_text('session = "user"')
    (project / "punchlist.toml").write_text('session = "project"')
    Trust.of_user(home).trust(project / "punchlist.toml")
    assert load(flags, environment=env, cwd=project).session == "flag"
    assert load({"session": None}, environment=env, cwd=project).session == "environment"
    assert load(environment=home, cwd=project).session == "project"
    (project / "punchlist.toml").unlink()
    assert load(environment=home, cwd=project).session == "user"
    users_file(home).unlink()
    assert load(environment=home, cwd=project).session == "default"


def test_each_setting_is_looked_for_by_itself(project: Path, home: dict[str, str]) -> None:
    users_file(home).write_text('session = "user"\nsynchronous = "full"')
    (project / "punchlist.toml").write_text('session = "project"')
    Trust.of_user(home).trust(project / "punchlist.toml")
    env = {**home, "PUNCHLIST_DATABASE_URL": "sqlite:////tmp/x.db"}
    found = load(environment=env, cwd=project)
    assert (found.database, found.session, found.synchronous, found.root, found.session_is_named) == (
        "sqlite:////tmp/x.db",
        "project",
        "full",
        project,
        True,
    )


def test_a_session_and_an_outside_database_of_a_project_need_trust(project: Path, home: dict[str, str]) -> None:
    file = project / "punchlist.toml"
    file.write_text('session = "project"\ndatabase = "/elsewhere.db"\nsynchronous = "full"')
    found = load(environment=home, cwd=project)
    assert (found.session, found.session_is_named, found.synchronous) == ("default", False, "full")
    assert found.untrusted == ("session = project", "database = /elsewhere.db")
    assert found.refused_database == "/elsewhere.db"
    # What the user sets replaces it, so nothing is refused.
    env = {**home, "PUNCHLIST_DATABASE_URL": "sqlite:////tmp/x.db"}
    assert load(environment=env, cwd=project).refused_database is None
    Trust.of_user(home).trust(file)
    trusted = load(environment=home, cwd=project)
    assert (trusted.session, trusted.database, trusted.untrusted) == ("project", "/elsewhere.db", ())


@pytest.mark.parametrize(
    ("variable", "field"),
    [
        ("PUNCHLIST_SESSION", "session"),
        ("PUNCHLIST_DATABASE_URL", "database"),
        ("PUNCHLIST_SYNCHRONOUS", "synchronous"),
    ],
)
def test_every_setting_has_its_variable_and_an_empty_one_does_not_count(
    variable: str, field: str, project: Path, home: dict[str, str]
) -> None:
    unset = getattr(load(environment=home, cwd=project), field)
    assert getattr(load(environment={**home, variable: "full"}, cwd=project), field) == "full" != unset
    assert getattr(load(environment={**home, variable: ""}, cwd=project), field) == unset


def test_the_users_file_is_where_xdg_says(project: Path, home: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "xdg/punchlist"
    folder.mkdir(parents=True)
    (folder / "punchlist.toml").write_text('session = "xdg"')
    env = {**home, "XDG_CONFIG_HOME": str(tmp_path / "xdg")}
    assert load(environment=env, cwd=project).session == "xdg"


def test_the_database_is_in_the_projects_folder_else_in_the_users(
    project: Path, home: dict[str, str], tmp_path: Path
) -> None:
    elsewhere = outside(project)
    assert load(environment=home, cwd=project).database == str(project / ".punchlist/punchlist.db")
    assert load(environment=home, cwd=elsewhere) == Settings(
        f"{home['HOME']}/.local/share/punchlist/punchlist.db", "default", "normal", None
    )
    env = {**home, "XDG_DATA_HOME": str(tmp_path / "data")}
    assert load(environment=env, cwd=elsewhere).database == str(tmp_path / "data/punchlist/punchlist.db")


@pytest.mark.parametrize("mark", ["punchlist.toml", ".punchlist", ".git"])
def test_a_project_is_the_nearest_folder_with_a_mark(mark: str, tmp_path: Path) -> None:
    inner = tmp_path / "outer/inner"
    deep = inner / "a/b"
    deep.mkdir(parents=True)
    (tmp_path / "outer/.git").mkdir()
    assert project_root(deep) == tmp_path / "outer"
    (inner / mark).touch()
    assert project_root(deep) == inner
    assert project_root(inner) == inner


def test_a_folder_of_no_project_has_no_root(tmp_path: Path) -> None:
    assert project_root(tmp_path) is None


def test_a_project_is_found_through_a_link(project: Path, tmp_path: Path) -> None:
    (project / "src").mkdir()
    (tmp_path / "link").symlink_to(project / "src")
    assert project_root(tmp_path / "link") == project


def test_projects_that_share_a_database_have_sessions_of_their_own(tmp_path: Path, home: dict[str, str]) -> None:
    env = {**home, "PUNCHLIST_DATABASE_URL": "postgresql:///shared"}
    sessions = []
    for place in ("one/app", "two/app"):
        (tmp_path / place / ".git").mkdir(parents=True)
        (tmp_path / place / "src").mkdir()
        sessions.append(load(environment=env, cwd=tmp_path / place).session)
        assert load(environment=env, cwd=tmp_path / place / "src").session == sessions[-1]
    assert sessions[0] != sessions[1]
    assert all(session.startswith("app-") and len(session) == 12 for session in sessions)


def test_outside_of_any_project_a_shared_database_has_the_default_session(project: Path, home: dict[str, str]) -> None:
    env = {**home, "PUNCHLIST_DATABASE_URL": "postgresql:///shared"}
    assert load(environment=env, cwd=outside(project)).session == "default"


@pytest.mark.parametrize("name", ["a b\tc", "日本", "x" * 200, "-", "a\x1b[2Jb"])
def test_a_session_named_after_a_folder_is_a_valid_id(name: str, tmp_path: Path, home: dict[str, str]) -> None:
    (tmp_path / name / ".git").mkdir(parents=True)
    env = {**home, "PUNCHLIST_DATABASE_URL": "postgresql:///shared"}
    session = load(environment=env, cwd=tmp_path / name).session
    assert session.isascii()
    assert session.isprintable()
    assert " " not in session
    assert len(session) <= 60


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ('databse = "x"', 1, "databse"),
        ('# settings\n\nsession = "s"\n  colour = "red"\n', 4, "colour"),
        ('session = "s"\n[colours]\nred = "m"\n', 2, "colours"),
        ('session = "s"\n[[colours]]\nred = "m"\n', 2, "colours"),
        ('session = "s"\n"with blanks!" = 1\n', 2, "with blanks!"),
        ('session = "s"\ncolour.red = 1\n', 2, "colour"),
        ('session = "s"\ncolour = [\n  "red",\n]\n', 2, "colour"),
        ('session = """\ncolour\n"""\ncolour = "red"\n', 4, "colour"),
    ],
    ids=["first", "indented", "table", "array of tables", "quoted", "dotted", "over lines", "said in a text before"],
)
def test_an_unknown_setting_is_named_with_its_file_and_line(
    text: str, line: int, key: str, project: Path, home: dict[str, str]
) -> None:
    (project / "punchlist.toml").write_text(text)
    told = complaint(project, home)
    assert told.startswith(f"{project}/punchlist.toml, line {line}: unknown setting {key!r}.")
    known = "database, session, synchronous, pool_size, policy, workspace, sandbox, mcp, agent, agents, notify"
    assert told.endswith(f"Known settings: {known}.")


@pytest.mark.parametrize(
    ("key", "meant"), [("sesion", "session"), ("Database", "database"), ("agnets", "agents"), ("polcy", "policy")]
)
def test_the_nearest_setting_is_suggested(key: str, meant: str, project: Path, home: dict[str, str]) -> None:
    (project / "punchlist.toml").write_text(f'{key} = "x"')
    assert f"unknown setting {key!r}. Did you mean {meant}? Known settings:" in complaint(project, home)


def test_an_unknown_setting_in_the_users_file_is_named_too(project: Path, home: dict[str, str]) -> None:
    users_file(home).write_text("x = 1")
    assert complaint(project, home).startswith(f"{users_file(home)}, line 1: unknown setting 'x'.")


@pytest.mark.parametrize("value", ["5", "true", "1.5", "[]", "{}", "2026-02-21"])
def test_a_value_of_the_wrong_type_is_named_with_its_file_and_line(
    value: str, project: Path, home: dict[str, str]
) -> None:
    (project / "punchlist.toml").write_text(f'database = "x"\nsession = {value}\n')
    assert complaint(project, home) == f"{project}/punchlist.toml, line 2: session must be text in quotes."


@pytest.mark.parametrize(
    "content",
    [
        b"session = ",
        b"session = 'a'\nsession = 'b'",
        b'{"session": "json"}',
        b"a = " + b"[" * 10_000 + b"]" * 10_000,
        b"\xff\xfe\x00",
        b'session = "\x00"',
        b"[agent]\nmax_tokens = " + b"9" * 5_000,
    ],
    ids=["cut off", "twice", "JSON", "nested 10,000 deep", "not UTF-8", "NUL", "5,000 digits"],
)
def test_a_broken_file_is_named(content: bytes, project: Path, home: dict[str, str]) -> None:
    (project / "punchlist.toml").write_bytes(content)
    assert complaint(project, home).startswith(f"{project}/punchlist.toml: ")


def test_a_huge_file_is_refused_unread(project: Path, home: dict[str, str]) -> None:
    with (project / "punchlist.toml").open("wb") as file:
        file.truncate(100_000_000)
    assert "is larger than 1,000,000 bytes" in complaint(project, home)


def test_a_folder_in_the_files_place_is_named(project: Path, home: dict[str, str]) -> None:
    (project / "punchlist.toml").mkdir()
    assert complaint(project, home).startswith(f"{project}/punchlist.toml: cannot be read")


def test_the_pool_size_is_a_whole_number_within_limits(project: Path, home: dict[str, str]) -> None:
    assert load(environment=home, cwd=project).pool_size == 32
    (project / "punchlist.toml").write_text("pool_size = 8")
    assert load(environment=home, cwd=project).pool_size == 8
    assert load(environment={**home, "PUNCHLIST_POOL_SIZE": "64"}, cwd=project).pool_size == 64
    for wrong in ("3", "1001", "many", "-8", "8.5"):
        with pytest.raises(ConfigError, match=rf"^pool_size: must be a whole number from 4 to 1000, got '{wrong}'$"):
            load(environment={**home, "PUNCHLIST_POOL_SIZE": wrong}, cwd=project)
    for wrong in ('"8"', "3", "true"):
        (project / "punchlist.toml").write_text(f'session = "s"\npool_size = {wrong}')
        assert "punchlist.toml, line 2: pool_size: must be a whole number" in complaint(project, home)


def test_synchronous_is_one_of_two_words_in_any_case(project: Path, home: dict[str, str]) -> None:
    assert load({"synchronous": "FULL"}, environment=home, cwd=project).synchronous == "full"
    with pytest.raises(ConfigError, match=r"^synchronous: must be one of normal, full, got 'off\\\\x1b'$"):
        load({"synchronous": "off\x1b"}, environment=home, cwd=project)


def test_a_wrong_word_in_a_file_is_named_with_its_line(project: Path, home: dict[str, str]) -> None:
    (project / "punchlist.toml").write_text('session = "s"\nsynchronous = "off"\n')
    assert complaint(project, home) == (
        f"{project}/punchlist.toml, line 2: synchronous: must be one of normal, full, got 'off'"
    )


def test_blanks_around_an_address_are_none_of_it(project: Path, home: dict[str, str]) -> None:
    env = {**home, "PUNCHLIST_DATABASE_URL": " sqlite:////tmp/x.db "}
    assert load(environment=env, cwd=project).database == "sqlite:////tmp/x.db"
