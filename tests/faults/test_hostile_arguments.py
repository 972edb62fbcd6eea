"""Hostile text in every field that the command line takes: stored exactly or refused (trust tests 20 and 21).

Each command is a real process, since arguments, environment and files are bytes before they are
text. (No argument can hold a NUL or more than 128 KB; those come through the settings file, and
through the tools in the contract tests.)
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.faults.processes import Answer, punchlist, together
from tests.faults.screen import BYTES, ESCAPES, acting
from tests.faults.script import Script


class Call(NamedTuple):
    """One use of the program."""

    arguments: tuple[str | bytes, ...]
    env: tuple[tuple[str, bytes], ...] = ()
    settings: bytes | None = None


Field = Callable[[bytes], Call]
Run = Callable[[str, Call], tuple[Answer, Path]]

STORED: dict[str, Field] = {
    "todos add TEXT": lambda text: Call(("todos", "add", "--", text)),
    "todos add --doing": lambda text: Call(("todos", "add", "x", "--doing", text)),
    "todos edit TEXT": lambda text: Call(("todos", "edit", "1", "--", text)),
    "todos add --why": lambda text: Call(("todos", "add", "x", "--why", text)),
    "todos add --session": lambda text: Call(("todos", "add", "x", "--session", text)),
    "sessions end --reason": lambda text: Call(("sessions", "end", "--reason", text)),
    "PUNCHLIST_SESSION": lambda text: Call(("todos", "add", "x"), env=(("PUNCHLIST_SESSION", text),)),
    "session in the settings": lambda text: Call(("todos", "add", "x"), settings=b"session = '''" + text + b"'''"),
    "name of the person": lambda text: Call(("todos", "add", "x"), env=(("LOGNAME", text),)),
}
"""Fields whose text is kept: when the command succeeds, exactly that text is in the database."""

LOOKED_AT: dict[str, Field] = {
    "todos --session": lambda text: Call(("todos", "--session", text)),
    "todos done ITEM": lambda text: Call(("todos", "done", "--", text)),
    "todos --turn": lambda text: Call(("todos", "--turn", text)),
    "log --session": lambda text: Call(("log", "--session", text)),
    "log --limit": lambda text: Call(("log", "--limit", text)),
    "a command": lambda text: Call((text,)),
    "an option": lambda text: Call(("todos", b"--" + text)),
    "one argument too many": lambda text: Call(("todos", "add", "x", text)),
    "db backup FILE": lambda text: Call(("db", "backup", text)),
    "db restore FILE": lambda text: Call(("db", "restore", "--yes", text)),
    "PUNCHLIST_DATABASE_URL": lambda text: Call(("todos",), env=(("PUNCHLIST_DATABASE_URL", text),)),
    "PUNCHLIST_DATABASE_URL of a server": lambda text: Call(
        ("todos",), env=(("PUNCHLIST_DATABASE_URL", b"postgresql://" + text + b"@127.0.0.1:1/x"),)
    ),
    "PUNCHLIST_SYNCHRONOUS": lambda text: Call(("todos",), env=(("PUNCHLIST_SYNCHRONOUS", text),)),
    "COLUMNS": lambda text: Call(("todos",), env=(("COLUMNS", text),)),
    "the settings": lambda text: Call(("todos",), settings=text),
    "a setting's name": lambda text: Call(("todos",), settings=b'"' + text + b'" = "x"'),
    "database in the settings": lambda text: Call(("todos",), settings=b"database = '''" + text + b"'''"),
}
"""Fields that are looked at and not kept."""

ALL_ESCAPES = "".join(ESCAPES.values()).encode()
ALL_BYTES = b"".join(BYTES.values())
SINGLE = {
    **{name: text.encode() for name, text in ESCAPES.items()},
    **BYTES,
    "120,000 characters": b"x" * 120_000,
}
EACH = pytest.param(SINGLE, id="each", marks=pytest.mark.soak)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with a checklist of one item and an open turn, in the session that commands use."""
    path = tmp_path_factory.mktemp("template") / "punchlist.db"
    script = Script(str(path), "default")
    script.house.checklists.add(script.scope, "An item", reason="test")
    script.perform(0)
    script.close()
    return path


@pytest.fixture
def call(tmp_path: Path, environment: dict[str, str], template: Path) -> Run:
    """Use the program in a project of its own."""

    def run(name: str, wanted: Call) -> tuple[Answer, Path]:
        project = tmp_path / name
        path = project / ".punchlist" / "punchlist.db"
        path.parent.mkdir(parents=True)
        shutil.copy(template, path)
        if wanted.settings is not None:
            (project / "punchlist.toml").write_bytes(wanted.settings)
        env = {**environment, **{variable: os.fsdecode(value) for variable, value in wanted.env}}
        return punchlist(project, env, *wanted.arguments), path

    return run


@pytest.mark.spec("W10")
@pytest.mark.parametrize("strings", [pytest.param({"escapes": ALL_ESCAPES, "bytes": ALL_BYTES}, id="combined"), EACH])
@pytest.mark.parametrize("field", STORED)
def test_hostile_text_is_stored_exactly_or_refused_in(call: Run, field: str, strings: dict[str, bytes]) -> None:
    for name, (answer, path) in _all(call, {name: STORED[field](text) for name, text in strings.items()}):
        _assert_civil(name, answer)
        if answer.code == 0:
            sent = strings[name].decode()
            held = {text.removeprefix("person:") for text in _texts_in(path)}
            assert held & {sent, sent.strip()}, answer


@pytest.mark.spec("W10")
@pytest.mark.parametrize("strings", [pytest.param({"combined": ALL_ESCAPES + ALL_BYTES}, id="combined"), EACH])
def test_hostile_text_does_no_harm_where_it_is_only_looked_at(call: Run, strings: dict[str, bytes]) -> None:
    calls = {f"{field}, {name}": ask(text) for field, ask in LOOKED_AT.items() for name, text in strings.items()}
    for name, (answer, _) in _all(call, calls):
        _assert_civil(name, answer)


HOSTILE_SETTINGS = {
    "NUL in the session": rb'session = "a\u0000b"',
    "NUL in the database": rb'database = "a\u0000b"',
    "ten megabytes": b'session = "' + b"x" * 10_000_000 + b'"',
    "nesting 10,000 deep": b"session = " + b"[" * 10_000,
    "a wrong type": b"session = 7",
}


def test_hostile_settings_are_refused_with_a_sentence(call: Run) -> None:
    calls = {name: Call(("todos", "add", "x"), settings=text) for name, text in HOSTILE_SETTINGS.items()}
    for name, (answer, _) in _all(call, calls):
        _assert_civil(name, answer)
        assert answer.code == 1, name


def _all(call: Run, calls: dict[str, Call]) -> list[tuple[str, tuple[Answer, Path]]]:
    return list(zip(calls, together(*(partial(call, name, wanted) for name, wanted in calls.items())), strict=True))


def _assert_civil(name: str, answer: Answer) -> None:
    """Whatever was sent, the program answers like this."""
    told = f"{name}: {answer}"
    assert answer.code in (0, 1, 2), told
    assert b"Traceback" not in answer.err, told
    assert b"failed unexpectedly" not in answer.err, told
    assert acting(answer.out) == [], told
    assert acting(answer.err) == [], told
    assert bool(answer.err) == bool(answer.code), told


def _texts_in(path: Path) -> Iterator[str]:
    """Every text in a database, also inside of JSON."""
    with closing(sqlite3.connect(path)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            for row in connection.execute(f'SELECT * FROM "{table}"').fetchall():
                for value in row:
                    if isinstance(value, str):
                        yield value
                        if value[:1] in ("{", "["):
                            yield from _texts(json.loads(value))


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for inner in value.values():
                yield from _texts(inner)
        case list():
            for inner in value:
                yield from _texts(inner)
