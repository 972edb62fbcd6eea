"""Settings as people write them, made up: JSON with comments in any layout, and TOML."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

NAMES = st.sampled_from(["a", "b b", "c", "é", 'q"', "model", "permissions", "//", "/*", "line\nbreak", "", "{", ","])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(["// no comment", "/* none */", 'a "quote"', "a, b}", "\\", "C:\\path\\"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)
OTHER_HOOK = st.builds(
    lambda command, more: {"hooks": [{"type": "command", "command": command}], **more},
    st.sampled_from(["lint", "other hook stop --for codex", "echo punchlist", "", "'unclosed"]),
    st.sampled_from([{}, {"matcher": "Bash|Edit"}, {"matcher": ""}]),
)
HOOKS = st.dictionaries(
    st.sampled_from(["Stop", "UserPromptSubmit", "PreToolUse", "Notification"]),
    st.lists(OTHER_HOOK, max_size=3),
    max_size=3,
)
SERVERS = st.dictionaries(st.sampled_from(["github", "punchlist2", "files"]), VALUES, max_size=2)


@st.composite
def settings(draw: st.DrawFn) -> dict[str, Any]:
    """Settings of a host in which others have hooks and servers, or nobody has."""
    found: dict[str, Any] = draw(st.dictionaries(NAMES, VALUES, max_size=4))
    if draw(st.booleans()):
        found["hooks"] = draw(HOOKS)
    if draw(st.booleans()):
        found["mcpServers"] = draw(SERVERS)
    order = draw(st.permutations(list(found)))
    return {key: found[key] for key in order}


@st.composite
def laid_out(draw: st.DrawFn, value: Any) -> str:
    """JSON in some layout: on one line or on many, with comments and trailing commas or without."""
    looks = st.sampled_from(["tight", "flat", "two", "four", "tabs", "crlf", "wild", "stray"])
    look = draw(looks)
    if look == "tight":
        return json.dumps(value, separators=(",", ":"), ensure_ascii=draw(st.booleans()))
    if look == "flat":
        return json.dumps(value) + draw(st.sampled_from(["", "\n", " \n\n"]))
    if look in ("two", "four", "tabs", "crlf"):
        indent = {"two": "  ", "four": "    ", "tabs": "\t", "crlf": "  "}[look]
        text = json.dumps(value, indent=indent, ensure_ascii=False) + draw(st.sampled_from(["", "\n", "\n\n"]))
        return text.replace("\n", "\r\n") if look == "crlf" else text
    blanks = ["", "", " ", "\n", "\n  ", "\t"]
    comments = [" // why\n", "/* a { [ , */", '\n  // "no": 1,\n  ', "/**/", "\r\n//x\r\n", " /* two\n lines */ "]
    gap = st.sampled_from(blanks + comments if look == "wild" else blanks)
    return draw(gap) + _spelled(draw, value, gap, commas=draw(st.booleans())) + draw(gap)


def _spelled(draw: st.DrawFn, value: Any, gap: st.SearchStrategy[str], *, commas: bool) -> str:
    if isinstance(value, dict):
        parts = [
            f"{draw(gap)}{json.dumps(key)}{draw(gap)}:{draw(gap)}{_spelled(draw, one, gap, commas=commas)}{draw(gap)}"
            for key, one in value.items()
        ]
    elif isinstance(value, list):
        parts = [f"{draw(gap)}{_spelled(draw, one, gap, commas=commas)}{draw(gap)}" for one in value]
    else:
        return json.dumps(value, ensure_ascii=draw(st.booleans()))
    trailing = "," + draw(gap) if parts and commas and draw(st.booleans()) else ""
    opens, closes = "{}" if isinstance(value, dict) else "[]"
    return f"{opens}{','.join(parts)}{trailing}{'' if parts else draw(gap)}{closes}"


TOML_LINES = st.sampled_from(
    [
        "",
        "# a comment",
        "#[mcp_servers.punchlist]",
        'model{} = "gpt" # why',
        "n{}=1",
        "'quoted.key{}' = 1979-05-27T07:32:00Z",
        '"[x]{}" = [1, 2, # two\n  [3],\n]',
        'text{} = """\n[mcp_servers.punchlist]\ncommand = "x"\n\\""" \'\'\' """',
        "raw{} = '''\n# ]] =\n'''",
        "inline{} = {{ a = 1, b = {{ c = '}}' }} }}",
        "dotted{}.a.b = nan",
    ]
)
TOML_HEADINGS = st.sampled_from(
    [
        "[table{}]",
        "[ table{} . 'in ner' ] # said",
        "[[list{}]]",
        "[mcp_servers.other{}]",
        "[mcp_servers.'punch list{}'.env]",
        '[projects."/a/b{}"]',
    ]
)


@st.composite
def toml(draw: st.DrawFn, name: str = "") -> str:
    """TOML with tables, lists of tables, and strings that look like either. Names end in `name` and a number."""
    kinds = draw(st.lists(st.sampled_from([TOML_LINES, TOML_LINES, TOML_HEADINGS]), max_size=8))
    lines = [draw(kind).format(f"{name}{number}") for number, kind in enumerate(kinds)]
    text = "\n".join(lines) + draw(st.sampled_from(["", "\n", "\n\n", "\n# end", "\n  "]))
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text
