"""What people write for a database, and what it is taken for."""

from __future__ import annotations

from pathlib import Path

import pytest

from punchlist.errors import ConfigError
from punchlist.storage.open import parse_database_url


@pytest.mark.parametrize(
    ("written", "file"),
    [
        ("sqlite:///a/b.db", "a/b.db"),
        ("sqlite:////a/b.db", "/a/b.db"),
        ("sqlite+pysqlite:///a/b.db", "a/b.db"),
        ("a/b.db", "a/b.db"),
        ("a?b.db", "a?b.db"),
        (" a/b.db\n", "a/b.db"),
        ("sqlite:///with space/%20.db", "with space/%20.db"),
    ],
)
def test_a_sqlite_file_is_named_as_it_is_written(written: str, file: str) -> None:
    read = parse_database_url(written)
    assert (read.kind, read.file, read.display) == ("sqlite", Path(file), f"sqlite:///{file}")


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("postgres://me:s3cret@host/name", "postgresql://me:***@host/name"),
        ("postgresql+psycopg://me:s3cret@host:5432/name", "postgresql://me:***@host:5432/name"),
        ("postgresql://host", "postgresql://host/"),
        ("postgresql:///name", "postgresql:///name"),
        ("postgresql://me@[::1]:5432/name", "postgresql://me@[::1]:5432/name"),
        ("postgresql://a:1,b:2/name", "postgresql://a:1,b:2/name"),
        ("postgresql:///name?host=/run/postgresql", "postgresql:///name?host=/run/postgresql"),
        ("postgresql://me:s3cret%40%2F%25@host/name", "postgresql://me:***@host/name"),
        ("postgresql://host:1/name?application_name=a@b", "postgresql://host:1/name?application_name=a@b"),
        ("postgresql://host/name?password=s3cret", "postgresql://:***@host/name"),
        ("postgresql://host/name?p%61ssword=s3cret", "postgresql://:***@host/name"),
        ("postgresql://host/name?sslpassword=s3cret", "postgresql://host/name?sslpassword=***"),
    ],
)
def test_a_postgresql_database_is_shown_without_what_is_secret(written: str, shown: str) -> None:
    read = parse_database_url(written)
    assert (read.kind, read.file, read.display) == ("postgresql", None, shown)
    assert "s3cret" not in repr(read)


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("postgresql://me:s3cret/2@host/name", "%2F for /"),
        ("postgresql://me:s3cret@2@host/name", "%40 for @"),
        ("postgresql://me:s3cret100%@host/name", "%25 for %"),
        ("postgresql://host:s3cret/name", "cannot be parsed"),
        ("postgresql://host/name?connect_timeout=s3cret", "cannot be parsed"),
        ("postgresql://host/name?no_such_option=s3cret", "cannot be parsed"),
        ("postgres:me:s3cret@host/name", "is incomplete"),
        ("postgres//me:s3cret@host/name", "is incomplete"),
        ("host=h password=s3cret dbname=x", "is incomplete"),
        ("mysql://me:s3cret@host/name", "not 'mysql'"),
        ("sqlite:///x.db?key=s3cret&mode=ro", "takes no options (key, mode)"),
        ("sqlite://s3cret/x.db", "cannot be parsed"),
        ("sqlite://", "must be a file"),
        (":memory:", "must be a file"),
        ("", "database address"),
        ("a\nb", "database address"),
        ("://", "cannot be parsed"),
    ],
)
def test_what_cannot_be_an_address_is_refused_without_what_is_secret(written: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_database_url(written)
    assert sentence in str(refused.value)
    assert "s3cret" not in str(refused.value)


def test_a_home_is_found_however_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    assert parse_database_url("~/x.db").file == parse_database_url("sqlite:///~/x.db").file == Path("/home/ann/x.db")


def test_an_encoded_path_is_not_taken_for_a_new_file(tmp_path: Path) -> None:
    (tmp_path / "my lists.db").touch()
    with pytest.raises(ConfigError, match="not percent-decoded"):
        parse_database_url(f"sqlite:///{tmp_path}/my%20lists.db")
    assert parse_database_url(f"sqlite:///{tmp_path}/other%20lists.db").file == tmp_path / "other%20lists.db"
