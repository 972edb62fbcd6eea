"""Colours and signs of the terminal application.

Colour has one meaning everywhere: amber needs you, blue works, green is done, red failed, grey is quiet. Each state has
a sign of its own shape besides, so nothing depends on colour alone. Code names meanings (`$working`), never colours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from textual.theme import Theme

SIGNS: Final = {
    "pending": "○",
    "in_progress": "▶",
    "completed": "✓",
    "cancelled": "✗",
    "dropped": "!",
    "needs_you": "◆",
    "waiting": "◇",
    "failed": "✗",
}
STYLES: Final = {
    "pending": "$quiet",
    "in_progress": "bold $working",
    "completed": "$done",
    "cancelled": "$quiet",
    "dropped": "$needs-you",
    "needs_you": "bold $needs-you",
    "waiting": "$needs-you",
    "failed": "$failed",
}
SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
STILL: Final = "▶"
"""Shown instead of the spinner with reduced motion."""


def _meanings(**colors: str) -> dict[str, str]:
    return {name.replace("_", "-"): color for name, color in colors.items()}


_DARK: Final = Theme(
    name="punchlist-dark",
    primary="#7aa2d6",
    secondary="#8fa8c8",
    accent="#7aa2d6",
    warning="#e0b15c",
    error="#e0787a",
    success="#7fbf8e",
    foreground="#d6d9de",
    background="#15171b",
    surface="#1b1e23",
    panel="#22262c",
    dark=True,
    variables=_meanings(
        needs_you="#e8b75a",
        working="#7aa2d6",
        done="#7fbf8e",
        failed="#e0787a",
        quiet="#8b929d",
        code="#c8b6e2",
        added="#8ccf9b",
        removed="#e58d8f",
        added_background="#1c2b22",
        removed_background="#2f1f22",
        rule="#343a43",
        block_cursor_background="#2c3a4d",
        block_cursor_foreground="#eef1f5",
        block_cursor_text_style="none",
        block_cursor_blurred_background="#23282f",
        block_cursor_blurred_foreground="#d6d9de",
        border="#4a5563",
        border_blurred="#343a43",
        footer_key_foreground="#e8b75a",
        scrollbar="#343a43",
        scrollbar_background="#15171b",
    ),
)
_LIGHT: Final = Theme(
    name="punchlist-light",
    primary="#2b5f9e",
    secondary="#4a6785",
    accent="#2b5f9e",
    warning="#96650a",
    error="#b3373b",
    success="#2d7442",
    foreground="#22262c",
    background="#fbfaf8",
    surface="#f3f2ef",
    panel="#e9e7e3",
    dark=False,
    variables=_meanings(
        needs_you="#8f5c00",
        working="#2b5f9e",
        done="#2d7442",
        failed="#b3373b",
        quiet="#626973",
        code="#6b4a9b",
        added="#22663a",
        removed="#a02f33",
        added_background="#e2f1e5",
        removed_background="#f8e4e4",
        rule="#d4d1cb",
        block_cursor_background="#d6e4f5",
        block_cursor_foreground="#14181d",
        block_cursor_text_style="none",
        block_cursor_blurred_background="#e9e7e3",
        block_cursor_blurred_foreground="#22262c",
        border="#9aa4b1",
        border_blurred="#d4d1cb",
        footer_key_foreground="#8f5c00",
        scrollbar="#cfccc6",
        scrollbar_background="#fbfaf8",
    ),
)
_SCROLLBAR_HANDLE: Final = ("scrollbar", "scrollbar_hover", "scrollbar_active")
_SCROLLBAR_BACK: Final = (
    "scrollbar_background",
    "scrollbar_background_hover",
    "scrollbar_background_active",
    "scrollbar_corner_color",
)
_TERMINAL: Final = _meanings(
    needs_you="ansi_yellow",
    working="ansi_blue",
    done="ansi_green",
    failed="ansi_red",
    quiet="ansi_bright_black",
    code="ansi_magenta",
    added="ansi_green",
    removed="ansi_red",
    added_background="ansi_default",
    removed_background="ansi_default",
    rule="ansi_bright_black",
    border="ansi_bright_black",
    border_blurred="ansi_bright_black",
    block_cursor_background="ansi_blue",
    block_cursor_foreground="ansi_bright_white",
    block_cursor_blurred_background="ansi_bright_black",
    block_cursor_blurred_foreground="ansi_bright_white",
    footer_key_foreground="ansi_yellow",
    **dict.fromkeys(_SCROLLBAR_HANDLE, "ansi_bright_black"),
    **dict.fromkeys(_SCROLLBAR_BACK, "ansi_default"),
)


_NO_COLOR: Final = _meanings(
    block_cursor_background="ansi_default",
    block_cursor_foreground="ansi_default",
    block_cursor_text_style="bold underline",
    block_cursor_blurred_background="ansi_default",
    block_cursor_blurred_foreground="ansi_default",
    # The handle is reversed.
    **dict.fromkeys(_SCROLLBAR_HANDLE, "ansi_default"),
)


def _of_terminal(name: str, *, dark: bool, **variables: str) -> Theme:
    """The terminal's own 16 colours."""
    return Theme(
        name=name,
        ansi=True,
        primary="ansi_blue",
        secondary="ansi_cyan",
        warning="ansi_yellow",
        error="ansi_red",
        success="ansi_green",
        accent="ansi_blue",
        foreground="ansi_default",
        background="ansi_default",
        surface="ansi_default",
        panel="ansi_default",
        boost="ansi_default",
        dark=dark,
        variables={
            **_TERMINAL,
            **variables,
            "ansi-background": "ansi_black" if dark else "ansi_white",
            "ansi-foreground": "ansi_white" if dark else "ansi_black",
        },
    )


THEMES: Final = {
    theme.name.removeprefix("punchlist-"): theme
    for theme in (
        _DARK,
        _LIGHT,
        _of_terminal("punchlist-terminal-dark", dark=True),
        _of_terminal("punchlist-terminal-light", dark=False),
        _of_terminal("punchlist-no-color", dark=True, **_NO_COLOR),
    )
}
NO_COLOR: Final = "NO_COLOR"
THEME_VARIABLE: Final = "PUNCHLIST_THEME"
_TRUE_COLOR: Final = ("truecolor", "24bit")


def choose_theme(environment: Mapping[str, str]) -> str:
    """The name of the theme: the one that was asked for, else by what the terminal says about itself."""
    if environment.get(NO_COLOR):
        return THEMES["no-color"].name
    asked = environment.get(THEME_VARIABLE, "")
    if asked in THEMES:
        return THEMES[asked].name
    shade = "light" if _has_light_background(environment) else "dark"
    term = environment.get("TERM", "")
    rich = environment.get("COLORTERM", "").lower() in _TRUE_COLOR or "256color" in term or "direct" in term
    return THEMES[shade if rich else f"terminal-{shade}"].name


def _has_light_background(environment: Mapping[str, str]) -> bool:
    """Some terminals tell their colours as `foreground;background`, 7 and 15 being the light ones."""
    return environment.get("COLORFGBG", "").rpartition(";")[2] in ("7", "15")
