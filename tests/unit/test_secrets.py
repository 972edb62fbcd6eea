"""Secrets stay out of what is written down and sent on (TRUST)."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from punchlist.kernel.secrets import HIDDEN, MIN_SECRET_LENGTH, Redactor, without_secrets

# Put together here, so that no scanner takes this file for a leak.
SHAPES = [
    "sk-" + "ant-api03-" + "a1B2" * 10,
    "sk-" + "proj-" + "a1B2" * 10,
    "ghp_" + "a1B2" * 9,
    "github_pat_" + "a1B2" * 9,
    "glpat-" + "a1B2" * 6,
    "punchlist_" + "0123456789ab_" + "a1B2-_" * 7 + "a",
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


SECRET_NAMES = (
    "PGPASSWORD DB_PASS SMTP_PASS SSHPASS GH_PAT GITLAB_PAT_RO API_KEYS MYKEYS SSH_KEYS MYSQL_PWD REDIS_PASSWD "
    "GOOGLE_APPLICATION_CREDENTIALS AWS_SECRET_ACCESS_KEY AWS_ACCESS_KEY_ID AWS_SESSION_TOKEN OPENAI_API_KEY "
    "OPENAI_APIKEY NPM_TOKENS npm_config__authToken CLIENT_SECRETS SENTRY_DSN SLACK_WEBHOOK_URL TWINE_PASSWORD "
    "AZURE_STORAGE_CONNECTION_STRING GPG_PASSPHRASE MY_CREDS PASS KEY AUTH_HEADER PUNCHLIST_MCP_TOKEN "
    "MYCOOKIE SESSION_COOKIES DISCORD_WEBHOOK MYWEBHOOK_URL OTP_SEED TOTP_SECRET WALLET_SEED MNEMONIC MY_MNEMONIC "
    "SEED_PHRASE RECOVERY_CODES REQUEST_HMAC"
)
ORDINARY_NAMES = (
    "PATH HOME PWD OLDPWD LANG TOKENIZERS_PARALLELISM MAX_TOKENS OPENAI_MAX_TOKENS KEYBOARD MONKEY SSH_AUTH_SOCK "
    "XAUTHORITY GIT_ASKPASS BYPASS COMPASS VIRTUAL_ENV LC_ALL GIT_AUTHOR_NAME PATTERN AUTHOR TERM PYTHONPATH "
    "PYTHONHASHSEED RANDOM_SEED SEED OTP_VERSION ERL_OTP_ROOT COOKIECUTTER_CONFIG EXIT_CODE API_URL HTTPS_PROXY"
)


@pytest.mark.parametrize("name", SECRET_NAMES.split())
def test_a_variable_with_the_name_of_a_secret_is_redacted_and_not_passed_on(name: str) -> None:
    """TRUST 29."""
    assert Redactor({name: "correct horse"}).text("say correct horse") == f"say [hidden {name}]"
    assert without_secrets({name: "x"}) == {}
    assert without_secrets({name: "x"}, [name]) == without_secrets({name: "x"}, [f"{name[:2]}*"]) == {name: "x"}
    assert without_secrets({name: "x"}, [name[:-1], f"{name}_", "Z*"]) == {}


@pytest.mark.parametrize("name", ORDINARY_NAMES.split())
def test_an_ordinary_variable_is_neither_redacted_nor_removed(name: str) -> None:
    assert Redactor({name: "correct horse"}).text("say correct horse") == "say correct horse"
    assert without_secrets({name: "x"}) == {name: "x"}


@pytest.mark.parametrize("value", ["https://me:hunter2@host/simple", "x " + SHAPES[2]])
def test_a_value_with_a_secret_is_not_passed_on_under_any_name(value: str) -> None:
    assert without_secrets({"PIP_INDEX_URL": value, "X": value, "Y": "y"}) == {"Y": "y"}


def test_the_address_of_a_database_without_a_login_is_passed_on() -> None:
    address = {"PUNCHLIST_DATABASE_URL": "sqlite:////data/punchlist.db"}
    assert without_secrets(address) == address


@pytest.mark.parametrize(
    "name",
    ["WEBHOOK_URL", "SLACK_WEBHOOK_URI", "AUTH_URL", "DATABASE_TOKEN_URL", "KEY_REDIS_URL", "DATABASE_SECRET_URL"],
)
def test_an_address_under_the_name_of_a_secret_is_not_passed_on(name: str) -> None:
    value = "https://hooks.example.com/services/T000/B000/XXXXXXXX"
    assert Redactor({name: value}).text(f"post to {value}") == f"post to [hidden {name}]"
    assert without_secrets({name: value}) == {}
    assert without_secrets({name: value}, [name]) == {name: value}


@pytest.mark.parametrize("login", ["postgresql://h/d?user=a&password=hunter22", "https://h/x?sig=abcdefgh"])
def test_an_address_with_a_login_in_its_parameters_is_not_passed_on(login: str) -> None:
    assert without_secrets({"DATABASE_URL": login, "SOME_URL": login, "OTHER_URL": "https://h/x?page=2"}) == {
        "OTHER_URL": "https://h/x?page=2"
    }


def test_every_line_of_a_secret_is_redacted_also_escaped() -> None:
    lines = ["-----BEGIN KEY-----", "first line 0123", 'second "line" 45', "short"]
    redactor = Redactor({"DEPLOY_KEY": "\n".join(lines)})
    value = "\n".join(lines)
    for printed in (value, json.dumps(value), json.dumps(json.dumps(value)), value.replace("\n", "\r\n"), quote(value)):
        assert redactor.text(f"<{printed}>").strip('<>"\\') == "[hidden DEPLOY_KEY]", printed
    assert redactor.text("a first line 0123 b") == "a [hidden DEPLOY_KEY] b"
    assert redactor.text(f"{lines[0]} short") == f"{lines[0]} short"


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
