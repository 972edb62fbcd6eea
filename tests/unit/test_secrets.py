"""Secrets stay out of what is written down and sent on (TRUST)."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from punchlist.kernel.secrets import HIDDEN, MIN_SECRET_LENGTH, Redactor

# Put together here, so that no scanner takes this file for a leak.
SHAPES = [
    "sk-" + "ant-api03-" + "a1B2" * 10,
    "sk-" + "proj-" + "a1B2" * 10,
    "ghp_" + "a1B2" * 9,
    "github_pat_" + "a1B2" * 9,
    "glpat-" + "a1B2" * 6,
    "AKIA" + "ABCD1234" * 2,
    "xoxb-" + "1234-5678-abcd",
    "AIza" + "a1B2c" * 7,
    "eyJ" + "a" * 20 + "." + "b" * 20 + "." + "c" * 20,
    "-----BEGIN RSA PRIVATE KEY-----\nabc\ndef\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN OPENSSH PRIVATE KEY-----\ncut off",
]


@pytest.mark.parametrize("secret", SHAPES)
def test_what_looks_like_a_secret_is_hidden(secret: str) -> None:
    assert Redactor().text(f"before {secret}\nafter").startswith(f"before {HIDDEN}")
    assert secret not in Redactor().text(f'{{"x": "{secret}"}}')


@pytest.mark.parametrize(
    ("text", "kept", "gone"),
    [
        ("Authorization: Bearer abcdefgh12345678", "Authorization: Bearer ", "abcdefgh"),
        ("curl -H 'authorization: basic dXNlcjpwYXNz'", "authorization: basic ", "dXNlcjpwYXNz"),
        ("postgres://user:hunter22@host/db", "postgres://user:", "hunter22"),
        ("password=hunter22 next", "password=", "hunter22"),
        ('"api_key": "abcdef123"', '"api_key": "', "abcdef123"),
        ("MY_TOKEN: abcdef123", "MY_TOKEN: ", "abcdef123"),
    ],
)
def test_what_a_name_gives_away_is_hidden_and_the_name_stays(text: str, kept: str, gone: str) -> None:
    told = Redactor().text(text)
    assert kept + HIDDEN in told
    assert gone not in told


@pytest.mark.parametrize(
    "text",
    [
        "the token is yes",
        "a key to the door",
        "https://example.org/a:b",
        "def secret(): pass",
        "max_tokens: 100",
        "sk-short",
        "risk-averse people and task-oriented work",
        "password = x",
        "",
    ],
)
def test_plain_words_stay(text: str) -> None:
    assert Redactor().text(text) == text


def test_values_of_the_environment_are_known_by_name() -> None:
    redactor = Redactor(
        {"DEPLOY_TOKEN": "correct horse", "EDITOR": "some-editor", "PWD": "/home/someone", "KEY": "short"}
    )
    assert redactor.text("say correct horse") == "say [hidden DEPLOY_TOKEN]"
    assert redactor.text("some-editor /home/someone short") == "some-editor /home/someone short"


def test_of_two_secrets_the_longer_is_hidden_whole() -> None:
    redactor = Redactor({"A_KEY": "aaaaaaaa", "B_KEY": "aaaaaaaabbbb"})
    assert redactor.text("aaaaaaaabbbb") == "[hidden B_KEY]"


def test_a_value_is_looked_through_to_its_depth() -> None:
    redactor = Redactor(also=["hunter2-hunter2"])
    value = {"a": ["x hunter2-hunter2", {"b": ("hunter2-hunter2", 5, None, True)}], "password": "correct horse"}
    assert redactor.value(value) == {"a": [f"x {HIDDEN}", {"b": [HIDDEN, 5, None, True]}], "password": HIDDEN}


def test_a_secret_that_is_a_key_is_hidden_too() -> None:
    assert "hunter2" not in str(Redactor(also=["hunter2-hunter2"]).value({"hunter2-hunter2": 1}))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)


@given(JSON, st.text(min_size=MIN_SECRET_LENGTH, max_size=20))
def test_no_known_secret_is_left_in_any_text_of_a_value(value: Any, secret: str) -> None:
    found = Redactor(also=[secret]).value([value, secret, f"x{secret}y"])
    assert secret not in found[1:]
    assert secret not in found[2].replace(HIDDEN, "")


@given(st.text())
def test_hiding_twice_is_hiding_once(text: str) -> None:
    once = Redactor().text(text)
    assert Redactor().text(once) == once


def _ends(text: str) -> bool:
    """Whether a text is looked through in a moment; in a process of its own, since nothing stops a pattern."""
    program = f"from punchlist.kernel.secrets import Redactor; Redactor().text({text})"
    try:
        subprocess.run([sys.executable, "-c", program], timeout=5, check=True)
    except subprocess.TimeoutExpired:
        return False
    return True


@pytest.mark.parametrize(
    "text",
    [
        "'token ' * 100_000",
        "'bearer ' * 100_000",
        "'-----BEGIN PRIVATE KEY-----' * 20_000",
        "'a://' * 200_000",
        "'token' + ' ' * 500_000",
        "'password' * 100_000",
    ],
)
def test_no_text_takes_long(text: str) -> None:
    assert _ends(text)


@pytest.mark.parametrize("text", ["'sk-a-' * 60_000", "'eyJaaaaaaaaaaa-' * 30_000"])
def test_no_text_made_for_it_takes_long(text: str) -> None:
    assert _ends(text)
