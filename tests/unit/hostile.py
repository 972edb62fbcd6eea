"""Text that means harm (TRUST 20 and 21), by what it tries."""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st

ACTS_ON_A_TERMINAL: Final = {
    "escape": "\x1b",
    "CSI that clears the screen": "a\x1b[2Jb",
    "CSI that colours": "a\x1b[31mb",
    "OSC 0, the window's title": "a\x1b]0;title\x07b",
    "OSC 8, a link": "\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "OSC 52, the clipboard": "\x1b]52;c;ZXZpbA==\x07",
    "DCS": "\x1bP$qm\x1b\\",
    "8-bit CSI": "a\x9b31mb",
    "8-bit OSC": "a\x9d0;title\x9cb",
    "8-bit DCS": "a\x90qb\x9c",
    "bell": "a\x07b",
    "backspace": "a\x08b",
    "delete": "a\x7fb",
    "shift out": "a\x0eb",
}

BREAKS_A_LINE: Final = {
    "line feed": "a\nb",
    "carriage return": "a\rb",
    "vertical tab": "a\x0bb",
    "form feed": "a\x0cb",
    "file separator": "a\x1cb",
    "group separator": "a\x1db",
    "record separator": "a\x1eb",
    "next line": "a\x85b",
    "line separator": "a\u2028b",
    "paragraph separator": "a\u2029b",
}

BREAKS_A_DATABASE: Final = {
    "NUL": "a\x00b",
    "half of a surrogate pair": "a\ud800b",
    "the other half": "a\udfffb",
    "both halves, the wrong way round": "\udc00\ud800",
}

REFUSED_IN_A_LINE: Final = {**ACTS_ON_A_TERMINAL, **BREAKS_A_LINE, **BREAKS_A_DATABASE}

HIDES_FROM_PEOPLE: Final = {
    "right-to-left override": "a\u202eb",
    "right-to-left isolate": "a\u2067b",
    "pop directional isolate": "a\u2069b",
    "right-to-left mark": "a\u200fb",
    "Arabic letter mark": "a\u061cb",
    "zero-width space": "a\u200bb",
    "word joiner": "a\u2060b",
    "byte-order mark": "a\ufeffb",
    "soft hyphen": "a\u00adb",
    "tag letter": "a\U000e0041b",
    "interlinear annotation": "a\ufff9b",
}

EVERYTHING_HOSTILE: Final = {**REFUSED_IN_A_LINE, **HIDES_FROM_PEOPLE}

any_text: Final = st.text(st.characters(exclude_categories=()), max_size=80)
"""All of Unicode, lone surrogates and unassigned code points too."""
