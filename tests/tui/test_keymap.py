"""The key file: what it may say, and what is reported (X13)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from punchlist.surfaces.tui.key_table import KEYS
from punchlist.surfaces.tui.keymap import UserKeys, find_conflicts, is_key, load_user_keys, parse_user_keys

FILE = Path("/home/ada/.config/punchlist/keys.toml")


@pytest.mark.spec("X13")
def test_every_line_of_the_key_file_is_used_or_reported_with_its_place() -> None:
    source = """\
[composer]
send = "ctrl+s"
newline = ["enter", "shift+enter"]
open_editor = []
sent = "f5"
help = "hyperspace"
escape = 3

[compser]
send = "f5"
"""
    keys = parse_user_keys(FILE, source)
    assert keys.keys == {
        "composer.send": ("ctrl+s",),
        "composer.newline": ("enter", "shift+enter"),
        "composer.open_editor": (),
    }
    assert keys.textual_keymap["composer.open_editor"] == "unbound"
    problems = [problem.replace(str(FILE), "keys.toml") for problem in keys.problems]
    assert problems[0].startswith("keys.toml, line 5: composer.sent: unknown action. Did you mean send?")
    assert problems[1:3] == [
        "keys.toml, line 6: composer.help: 'hyperspace' is not a key. Examples: ctrl+s, f2, alt+up, a, ?.",
        'keys.toml, line 7: composer.escape: must be a key in quotes, such as "ctrl+s", or a list of keys.',
    ]
    assert problems[3].startswith("keys.toml, line 9: compser: unknown group of keys. Did you mean composer?")


@pytest.mark.spec("X13")
def test_two_actions_with_one_key_are_reported() -> None:
    keys = parse_user_keys(FILE, '[composer]\nsend = "ctrl+p"\nhelp = "ctrl+g"\n')
    assert [problem.partition("line ")[2] for problem in keys.problems] == [
        "2: composer.send: ctrl+p is also the key of app.command_palette (Commands). Give one of them another key.",
        "3: composer.help: ctrl+g is also the key of composer.open_editor (Write in $EDITOR). "
        "Give one of them another key.",
    ]


@pytest.mark.spec("X13")
def test_a_broken_key_file_leaves_the_default_keys(home: Path) -> None:
    assert load_user_keys(os.environ) == UserKeys()
    path = home / ".config/punchlist/keys.toml"
    path.parent.mkdir(parents=True)
    path.write_text("[composer\n")
    keys = load_user_keys(os.environ)
    assert keys.keys == {}
    assert "is not valid TOML" in keys.problems[0]
    path.unlink()
    os.mkfifo(path)
    assert "cannot be read (is not a regular file)" in load_user_keys(os.environ).problems[0]


@pytest.mark.spec("X13")
def test_the_default_keys_are_keys_without_conflicts() -> None:
    assert [key for action in KEYS for key in action.keys if not is_key(key)] == []
    everything = UserKeys({action.id: action.keys for action in KEYS})
    assert list(find_conflicts(everything)) == []
    assert len({action.id for action in KEYS}) == len(KEYS)
