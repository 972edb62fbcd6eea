"""The command that an installation writes down: read again as it was written, on every system."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.examples import examples

from punchlist.errors import InvalidInput
from punchlist.integrations.install.entries import HookEntry, ServerEntry
from punchlist.integrations.install.entry_command import EntryCommand, parse_command, quote, split
from punchlist.integrations.install.settings_json import SettingsJson

LINES = st.text(st.sampled_from("ab \t\"'\\/:.$%^&é\n"), max_size=12)
WORDS = st.lists(st.one_of(LINES, st.text(max_size=8)), max_size=5)
JO = r"C:\Users\Jo Doe\Scripts\punchlist.exe"


@pytest.mark.spec("X2")
@pytest.mark.parametrize("windows", [True, False])
@given(words=WORDS)
@examples(300)
def test_words_are_read_again_as_they_were_written(words: list[str], windows: bool) -> None:
    assert split(quote(words, windows=windows), windows=windows) == words


@pytest.mark.spec("X2")
@pytest.mark.parametrize(
    ("line", "words"),
    [
        (r'"C:\a b\c.exe" hook stop', [r"C:\a b\c.exe", "hook", "stop"]),
        (r"C:\a\c.exe  hook" + "\t" + "stop ", [r"C:\a\c.exe", "hook", "stop"]),
        (r'"C:\a b\\" x', ["C:\\a b\\", "x"]),
        (r"C:\a'b\c.exe x", [r"C:\a'b\c.exe", "x"]),
        (r"C:\"a b\"\c.exe", ['C:"a', r'b"\c.exe']),
        (r'a"b c"d ""', ["ab cd", ""]),
        (r"say \"hi\"", ["say", '"hi"']),
        ('"left open', []),
        (" \t", []),
    ],
)
def test_a_line_is_read_as_windows_reads_it(line: str, words: list[str]) -> None:
    assert split(line, windows=True) == words


@pytest.mark.spec("X2")
def test_a_path_with_a_blank_is_known_again_on_windows() -> None:
    """So that installing again does not add the hooks again, and uninstalling takes them out."""
    command = EntryCommand((JO,), "codex", windows=True)
    server = ServerEntry("mcpServers", {"command": command.server[0], "args": command.server[1:]})
    settings = SettingsJson(command, (HookEntry("Stop", "stop", 20),), server)
    text = '{\n  "mine": 1\n}\n'
    merged = settings.add_entries(text)
    assert json.loads(merged)["hooks"]["Stop"][0]["hooks"][0]["command"] == f'"{JO}" hook stop --for codex'
    assert settings.add_entries(merged) == merged
    assert [(entry.state, entry.command[:1]) for entry in settings.entries(merged)] == [("installed", (JO,))] * 2
    assert settings.remove_entries(merged) == text
    moved = SettingsJson(EntryCommand(("punchlist",), "codex", windows=True), settings.hooks)
    assert json.loads(moved.add_entries(merged))["hooks"]["Stop"][0]["hooks"] == [
        {"type": "command", "command": "punchlist hook stop --for codex", "timeout": 20}
    ]


@pytest.mark.spec("X2")
def test_a_command_that_a_person_types_on_windows_loses_its_quotation_marks() -> None:
    assert parse_command(f'"{JO}" --flag "a b"', windows=True) == (JO, "--flag", "a b")
    assert parse_command(r"C:\tools\punchlist.exe", windows=True) == (r"C:\tools\punchlist.exe",)
    with pytest.raises(InvalidInput, match="is not a command"):
        parse_command('"C:\\left open', windows=True)
