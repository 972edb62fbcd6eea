"""Our entries in somebody's settings: nothing of theirs is lost, and what is taken out again is exactly ours."""

from __future__ import annotations

import copy
import json
import re
import tomllib
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.unit.examples import examples
from tests.unit.settings_texts import laid_out, settings, toml

from punchlist.integrations.install import jsonc
from punchlist.integrations.install.entries import EntryState, HookEntry, ServerEntry, UneditableFile
from punchlist.integrations.install.entry_command import EntryCommand
from punchlist.integrations.install.settings_json import SettingsJson
from punchlist.integrations.install.settings_toml import SettingsToml

COMMAND = EntryCommand(("/opt/a b/punchlist",), "codex")
SERVER = {"command": COMMAND.server[0], "args": COMMAND.server[1:], "required": True}
JSON = SettingsJson(
    COMMAND,
    (HookEntry("Stop", "stop", 20), HookEntry("SessionStart", "session-start", 20)),
    ServerEntry("mcpServers", SERVER),
)
TOML = SettingsToml(COMMAND, ServerEntry("mcp_servers", SERVER))
MOVED = EntryCommand(("/opt/new/punchlist",), "codex")
MOVED_SERVER = {**SERVER, "command": MOVED.server[0]}


def read(text: str) -> Any:
    return jsonc.load(text) or {}


def with_ours(found: dict[str, Any]) -> dict[str, Any]:
    """Settings as they should be after an installation, worked out in another way."""
    new = copy.deepcopy(found)
    for hook in JSON.hooks:
        command = f"'/opt/a b/punchlist' hook {hook.event} --for codex"
        group = {"hooks": [{"type": "command", "command": command, "timeout": 20}]}
        new.setdefault("hooks", {}).setdefault(hook.host_event, []).append(group)
    new.setdefault("mcpServers", {})["punchlist"] = SERVER
    return new


def is_within(small: str, large: str) -> bool:
    """Whether every character of one text is in the other, in order."""
    rest = iter(large)
    return all(char in rest for char in small)


@st.composite
def documents(draw: st.DrawFn) -> tuple[dict[str, Any], str]:
    value = draw(settings())
    return value, draw(laid_out(value))


@pytest.mark.spec("X2")
@given(documents())
@examples(200)
def test_installing_adds_our_entries_and_changes_nothing_else(document: tuple[dict[str, Any], str]) -> None:
    value, text = document
    assert read(text) == value
    merged = JSON.add_entries(text)
    assert read(merged) == with_ours(value)
    assert is_within(text, merged)
    assert JSON.add_entries(merged) == merged


COMMENTS = ("// why", "a { [ ,", '"no": 1,', "/**/", "//x", "two\n lines")


@pytest.mark.spec("X2")
@given(documents())
@examples(100)
def test_without_a_record_our_entries_are_known_by_their_command(document: tuple[dict[str, Any], str]) -> None:
    value, text = document
    left = JSON.remove_entries(JSON.add_entries(text))
    assert read(left) == less_empty(value, read(left))
    assert all(comment in left for comment in COMMENTS if comment in text)
    assert JSON.remove_entries(text) == text


def less_empty(value: dict[str, Any], left: dict[str, Any]) -> dict[str, Any]:
    """Tables that were empty before cannot be told from those that are empty without us."""
    expected = copy.deepcopy(value)
    if "Stop" in expected.get("hooks", {}) and not expected["hooks"]["Stop"] and "Stop" not in left.get("hooks", {}):
        del expected["hooks"]["Stop"]
    for table in ("hooks", "mcpServers"):
        if not expected.get(table, True) and table not in left:
            del expected[table]
    return expected


def edited(text: str, edit: tuple[str, Any]) -> str:
    """What somebody does to their settings meanwhile."""
    what, value = edit
    found = read(text)
    if what == "add":
        return jsonc.put(text, ("new",), value)
    if what == "hook":
        return jsonc.put(text, ("hooks", "Stop", len(found["hooks"]["Stop"])), {"hooks": [{"command": "theirs"}]})
    if what == "server":
        return jsonc.put(text, ("mcpServers", "mine"), value)
    if what == "remove":
        gone = [key for key in found if key not in ("hooks", "mcpServers")][:1]
        return jsonc.remove(text, (gone[0],)) if gone else text
    if what == "reformat":
        return json.dumps(found, indent=3)
    return f"// {value}\n{text}\n/* end */"


EDITS = st.tuples(
    st.sampled_from(["add", "hook", "server", "remove", "reformat", "comment"]), st.sampled_from([1, "x", {}])
)


@pytest.mark.spec("X2")
@given(documents(), st.lists(EDITS, min_size=1, max_size=3))
@examples(200)
def test_what_somebody_edits_meanwhile_is_what_is_left(
    document: tuple[dict[str, Any], str], edits: list[tuple[str, Any]]
) -> None:
    value, text = document
    assume("new" not in value)
    after = JSON.add_entries(text)
    for number, edit in enumerate(edits):
        assume(edit[0] not in [what for what, _ in edits[:number]])
        after = edited(after, edit)
    expected = read(after)
    left = read(JSON.remove_entries(after))
    expected["hooks"] = {
        at: [group for group in groups if "/opt/a b/punchlist" not in json.dumps(group)]
        for at, groups in expected["hooks"].items()
    }
    del expected["mcpServers"]["punchlist"]
    for at in ("Stop", "SessionStart"):
        if not expected["hooks"][at] and at not in left.get("hooks", {}):
            del expected["hooks"][at]
    for table in ("hooks", "mcpServers"):
        if not expected[table] and table not in left:
            del expected[table]
    assert left == expected


@pytest.mark.spec("X2")
@given(settings(), st.data())
@examples(100)
def test_edits_elsewhere_stay(value: dict[str, Any], data: st.DataObject) -> None:
    value = {**value, "theirs": "to-be-edited"}
    text = data.draw(laid_out(value))
    merged = JSON.add_entries(text)
    edit = ('"to-be-edited"', data.draw(st.sampled_from(['"another"', "[1,\n 2]", "{} // yes\n", '""'])))
    left = JSON.remove_entries(merged.replace(*edit))
    assert read(left) == less_empty(read(text.replace(*edit)), read(left))
    assert edit[1] in left


CHOSEN = (re.compile(r'(?<="timeout":)( ?)20'), re.compile(r'(?<="required":)( ?)true'))


def chosen(text: str) -> str:
    """Our entries with values that a person prefers."""
    timeout, required = CHOSEN
    return required.sub(r"\1false", timeout.sub(r"\g<1>60", text))


@pytest.mark.spec("X2")
@given(documents())
@examples(100)
def test_what_a_person_chose_in_our_entries_is_kept_and_goes_with_them(document: tuple[dict[str, Any], str]) -> None:
    _, text = document
    merged = JSON.add_entries(text)
    mine = chosen(merged)
    assert mine != merged
    assert JSON.add_entries(mine) == mine
    assert {entry.state for entry in JSON.entries(mine)} == {EntryState.INSTALLED}
    moved = SettingsJson(MOVED, JSON.hooks, ServerEntry("mcpServers", MOVED_SERVER)).add_entries(mine)
    assert moved == mine.replace("'/opt/a b/punchlist'", "/opt/new/punchlist").replace(
        "/opt/a b/punchlist", "/opt/new/punchlist"
    )
    assert JSON.remove_entries(mine) == JSON.remove_entries(merged)


@pytest.mark.spec("X2")
def test_what_is_missing_in_our_entries_is_added() -> None:
    less = re.sub(r', "(timeout|required)": (20|true)', "", JSON.add_entries('{"mine": 1}'))
    assert {entry.state for entry in JSON.entries(less)} == {EntryState.OUTDATED}
    assert read(JSON.add_entries(less)) == with_ours({"mine": 1})


# --- TOML ------------------------------------------------------------------------------------------------------------


def loaded(text: str) -> str:
    """Comparable also where a number is none."""
    return json.dumps(tomllib.loads(text), sort_keys=True, default=repr)


@pytest.mark.spec("X2")
@given(toml())
@examples(200)
def test_toml_gets_our_server_and_keeps_the_rest(text: str) -> None:
    merged = TOML.add_entries(text)
    assert merged.startswith(text)
    found = tomllib.loads(merged)
    assert found["mcp_servers"].pop("punchlist") == SERVER
    if not tomllib.loads(text).get("mcp_servers"):
        del found["mcp_servers"]
    assert json.dumps(found, sort_keys=True, default=repr) == loaded(text)
    assert TOML.add_entries(merged) == merged
    assert TOML.remove_entries(merged).rstrip() == text.rstrip()
    assert loaded(TOML.remove_entries(merged)) == loaded(text)
    assert TOML.remove_entries(text) == text


@pytest.mark.spec("X2")
@given(toml(), toml("x"))
@examples(100)
def test_toml_that_somebody_adds_meanwhile_is_what_is_left(text: str, more: str) -> None:
    merged = TOML.add_entries(text)
    # What comes below our table has to open one of its own.
    more = f"\n[below]\n{more}"
    edited_text = f"# above\n{merged}{more}"
    assert TOML.remove_entries(edited_text).split() == f"# above\n{text}\n{more}".split()
    assert loaded(TOML.remove_entries(edited_text)) == loaded(f"{text}\n{more}")


@pytest.mark.spec("X2")
@given(toml())
@examples(100)
def test_what_a_person_chose_in_our_table_is_kept_and_goes_with_it(text: str) -> None:
    merged = TOML.add_entries(text)
    mine = merged.replace("required = true", "required=  false # slow here")
    assert TOML.add_entries(mine) == mine
    assert [entry.state for entry in TOML.entries(mine)] == [EntryState.INSTALLED]
    moved = SettingsToml(MOVED, ServerEntry("mcp_servers", MOVED_SERVER)).add_entries(mine)
    assert moved == mine.replace("/opt/a b/punchlist", "/opt/new/punchlist")
    assert TOML.remove_entries(mine) == TOML.remove_entries(merged)


@pytest.mark.spec("X2")
def test_what_is_missing_in_our_table_is_added() -> None:
    less = TOML.add_entries("").replace("required = true\n", "")
    assert [entry.state for entry in TOML.entries(less)] == [EntryState.OUTDATED]
    assert tomllib.loads(TOML.add_entries(less))["mcp_servers"]["punchlist"] == SERVER


@pytest.mark.spec("X2")
def test_a_table_of_ours_that_somebody_extended_is_taken_out() -> None:
    ours = (
        '[mcp_servers."punchlist"]\ncommand = "punchlist"\nargs = [\n "mcp",\n "--for", "codex"]\n'
        '[mcp_servers.punchlist.env]\nA = "1"\n'
    )
    left = TOML.remove_entries(f"# top\nmodel = 1\n\n{ours}\n# theirs\n[other]\nx = 1\n")
    assert left == "# top\nmodel = 1\n\n# theirs\n[other]\nx = 1\n"


@pytest.mark.spec("X2")
@pytest.mark.parametrize(
    "ours",
    [
        '[mcp_servers]\npunchlist = { command = "punchlist", args = ["mcp", "--for", "codex"] }\n',
        'mcp_servers.punchlist.command = "punchlist"\nmcp_servers.punchlist.args = ["mcp", "--for", "codex"]\n',
    ],
)
def test_a_table_of_ours_that_somebody_wrote_in_another_form_is_left_to_them(ours: str) -> None:
    with pytest.raises(UneditableFile, match="has a form that cannot be removed") as refused:
        TOML.remove_entries(f"model = 1\n{ours}")
    assert refused.value.line in (2, 3)


# --- what is ours ----------------------------------------------------------------------------------------------------


@pytest.mark.spec("X2")
@pytest.mark.parametrize(
    "line",
    [
        "punchlist hook stop --for codex",
        "/old/place/.venv/bin/punchlist hook stop --for codex",
        "'/with blank/punchlist' hook stop --for codex",
        "uvx punchlist@1.2 hook stop --for codex",
        "python3 -m punchlist hook stop --for codex",
    ],
)
def test_an_older_entry_of_ours_is_brought_up_to_date_where_it_stands(line: str) -> None:
    theirs = {"hooks": [{"type": "command", "command": "lint"}]}
    old = {"matcher": "x", "hooks": [{"type": "command", "command": line, "timeout": 5, "more": 1}]}
    text = json.dumps({"hooks": {"Stop": [old, theirs]}, "mcpServers": {"punchlist": OLD_SERVER}}, indent=2)
    new = read(JSON.add_entries(text))
    assert new["hooks"]["Stop"] == [
        {"matcher": "x", "hooks": [{"type": "command", "command": OUR_STOP, "timeout": 5, "more": 1}]},
        theirs,
    ]
    assert new["mcpServers"] == {"punchlist": {**OLD_SERVER, **SERVER, "args": [*SERVER_ARGS, "--session", "s"]}}


SERVER_ARGS = ["mcp", "--for", "codex"]
OLD_SERVER = {"command": "/old/punchlist", "args": [*SERVER_ARGS, "--session", "s"], "env": {"A": "1"}}
OUR_STOP = "'/opt/a b/punchlist' hook stop --for codex"


@pytest.mark.spec("X2")
@pytest.mark.parametrize(
    "line",
    [
        "other hook stop --for codex",
        "punchlist hook stop --for gemini",
        "punchlist todos add 'hook stop'",
        "echo punchlist",
        "notpunchlist hook stop --for codex",
        "punchlist 'hook stop --for codex",
    ],
)
def test_what_others_run_is_not_ours(line: str) -> None:
    text = json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": line}]}]}})
    assert JSON.remove_entries(text) == text
    assert len(read(JSON.add_entries(text))["hooks"]["Stop"]) == 2


@pytest.mark.spec("X2")
def test_hooks_of_ours_that_are_there_twice_or_where_they_do_not_belong_go() -> None:
    group = {"hooks": [{"type": "command", "command": OUR_STOP, "timeout": 20}]}
    text = json.dumps(
        {"hooks": {"Stop": [group, group], "SubagentStop": [group, {"hooks": []}], "PreToolUse": [group]}}
    )
    hooks = read(JSON.add_entries(text))["hooks"]
    assert hooks["Stop"] == [group]
    assert hooks["SubagentStop"] == [{"hooks": []}]
    assert "PreToolUse" not in hooks


@pytest.mark.spec("X2")
def test_our_hook_in_a_group_of_somebody_else_goes_alone() -> None:
    text = '{"hooks": {"Stop": [{"hooks": [{"command": "a"}, {"command": "punchlist hook stop --for codex"}]}]}}'
    assert JSON.remove_entries(text) == '{"hooks": {"Stop": [{"hooks": [{"command": "a"}]}]}}'


@pytest.mark.spec("X2")
@pytest.mark.parametrize(
    ("before", "after", "left"),
    [
        ('{"a": 1, // why\n', " }", '{"a": 1 // why\n }'),
        ('{"a": 1,\n  // why\n  ', "\n}", '{"a": 1\n  // why\n}'),
        ("{\n  // why\n  ", ', "b": 2 }', '{\n  // why\n   "b": 2 }'),
        ("{\n  // why\n  ", ", // ours\n}", "{\n  // why\n   // ours\n}"),
        ("{ /* why */ ", " }", "{ /* why */ }"),
        ('{"a": 1, ', ",}", '{"a": 1,}'),
    ],
)
def test_comments_beside_our_entry_stay_comments(before: str, after: str, left: str) -> None:
    ours = f'"mcpServers": {json.dumps({"punchlist": OLD_SERVER})}'
    assert JSON.remove_entries(before + ours + after) == left
    read(left)


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.spec("X2")
@pytest.mark.parametrize(
    ("text", "why", "line"),
    [
        ('{\n "hooks": null\n}', "hooks must be an object, got null", 2),
        ('{"hooks": []}', "hooks must be an object, got an array", 1),
        ('{"hooks": {"Stop": {}}}', "hooks.Stop must be an array, got an object", 1),
        ('{"mcpServers": "x"}', "mcpServers must be an object, got text", 1),
        ('{"mcpServers": {"punchlist": true}}', "was not made by this command", 1),
        ('{"mcpServers":\n\n{"punchlist": {"command": "x"}}}', "was not made by this command", 3),
        ('{"hooks": {},\n"hooks": {}}', "has the key “hooks” twice", 2),
        ('{"hooks": {"Stop": [],\n"Stop": []}}', "has the key “Stop” twice", 2),
        ("[]", "must be an object, got an array", 1),
        ("7", "must be an object, got a number", 1),
        ('{\n  "a": tru\n}', "is not valid JSON: Expecting value (column 8)", 2),
        ('{"a" 1}', "Expecting ':' delimiter", 1),
        ('{"a": 1', "Expecting ',' delimiter", 1),
        ("{'a': 1}", "Expecting property name enclosed in double quotes", 1),
        ('{"a": 1} x', "Extra data", 1),
        ('{"a": 1 /* }', "Expecting ',' delimiter", 1),
        ('{"a": "tab\there"}', "Invalid control character", 1),
        ('{"a": 01}', "Expecting ',' delimiter", 1),
        ("[1,,2]", "Expecting value", 1),
    ],
)
def test_what_cannot_be_merged_is_refused_with_its_place(text: str, why: str, line: int) -> None:
    with pytest.raises(UneditableFile) as refused:
        JSON.add_entries(text)
    assert why in refused.value.reason
    assert refused.value.line == line


@pytest.mark.spec("X2")
@pytest.mark.parametrize(
    ("text", "why", "line"),
    [
        ("a = 1\nb = \n", "is not valid TOML", 2),
        ("a = 1\nmcp_servers = { other = {} }\n", "is written on one line", 2),
        ("mcp_servers = 1", "must be a table", None),
        ('x = 1\n[mcp_servers.punchlist]\ncommand = "other"\n', "was not made by this command", 2),
        ("[mcp_servers]\npunchlist = 1", "must be a table", None),
        ("a = 1\na = 2\n", "is not valid TOML", 2),
    ],
)
def test_toml_that_cannot_be_merged_is_refused_with_its_place(text: str, why: str, line: int | None) -> None:
    with pytest.raises(UneditableFile) as refused:
        TOML.add_entries(text)
    assert why in refused.value.reason
    assert refused.value.line == line


@pytest.mark.spec("X2")
def test_keys_that_are_there_twice_elsewhere_are_left_as_they_are() -> None:
    text = '{"a": 1, "a": 2, "hooks": {}}'
    merged = JSON.add_entries(text)
    assert merged.startswith('{"a": 1, "a": 2, "hooks": {"Stop"')
    assert JSON.remove_entries(merged) == '{"a": 1, "a": 2}'
