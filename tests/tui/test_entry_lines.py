"""How calls are drawn."""

from __future__ import annotations

from punchlist.conversations.model import ChatEntry, Message, NoticeKind
from punchlist.surfaces.tui.entries import CallEntry, NoteEntry
from punchlist.surfaces.tui.entry_lines import entry_lines
from punchlist.surfaces.tui.stored_entries import entries_from
from punchlist.surfaces.tui.theme import THEMES


def drawn(entry: CallEntry, width: int = 40) -> list[str]:
    return [line.plain.rstrip() for line in entry_lines(entry, width)]


def test_output_is_wrapped_between_words_and_keeps_its_blanks() -> None:
    output = "step 4 with somewhat longer words in the output\n    indented  text"
    lines = drawn(CallEntry("1", "run_command", {"command": "x"}, "executing", output))
    assert lines[1:] == ["  │ step 4 with somewhat longer words in", "  │ the output", "  │     indented  text"]


def test_one_line_of_a_failure_is_not_replaced_by_a_line_about_it() -> None:
    def failed(count: int) -> list[str]:
        output = "\n".join(f"line {number}" for number in range(count))
        return drawn(CallEntry("1", "edit_file", {}, "error", output))[1:]

    assert failed(5) == [f"  │ line {number}" for number in range(5)]
    assert failed(6)[1] == "  │ … 2 more lines"


def test_a_long_command_does_not_hide_that_it_waits_for_approval() -> None:
    (line,) = drawn(CallEntry("1", "run_command", {"command": "echo " * 20}, "awaiting_approval"), 60)
    assert "needs your approval" in line
    assert "echo" in line


def test_scrollbars_have_colours_of_the_terminal() -> None:
    for name, theme in THEMES.items():
        colours = {key: value for key, value in theme.variables.items() if key.startswith("scrollbar")}
        if name.startswith("terminal"):
            assert set(colours.values()) == {"ansi_bright_black", "ansi_default"}
        if name == "no-color":
            assert set(colours.values()) == {"ansi_default"}


def test_a_notice_of_a_mission_says_what_happened_without_ids() -> None:
    content = "[TODO 01a1f609-bc22-7d62-9f38-5a7bca6c7af1, run 01a1f609-bc22-7d62]\n> The build takes 40 s now."
    message = Message("m1", "chat", None, 1, "system", NoticeKind.TODO_RESULT.value, content, "", None, None)
    (entry,) = entries_from([ChatEntry(message, None)], lambda _: None)
    assert isinstance(entry, NoteEntry)
    assert entry.text == "todo result: The build takes 40 s now."
