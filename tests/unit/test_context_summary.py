"""What a summary of older messages keeps, and what it leaves out first (C7)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from punchlist.agent.context import messages_to_keep, shorten_results
from punchlist.agent.context_summary import ContextSummary
from punchlist.models.model import CallReturn, Message, Reply, RequestedCall, UserText

pytestmark = pytest.mark.spec("C7")
LIMIT = 40_000


def called(number: int, tool: str, arguments: dict[str, object], result: str, *, failed: bool = False) -> list[Message]:
    call = RequestedCall(f"c{number}", tool, arguments)
    return [Reply("", (call,)), CallReturn(call.id, tool, result, failed)]


def summary(*messages: Message) -> str:
    return ContextSummary().extended(messages).text(LIMIT)


def reads(numbers: Sequence[int]) -> list[Message]:
    return [
        message for n in numbers for message in called(n, "read_file", {"path": f"notes/{n}.md"}, f"# {n}\n\nvalue {n}")
    ]


def test_a_finding_is_told_with_where_it_is_from() -> None:
    assert "- read_file notes/7.md: # 7 / value 7" in summary(*reads([7]))
    found = summary(*called(1, "search_text", {"pattern": "port", "path": "src"}, "src/a.py:3:port = 8007"))
    assert "- search_text pattern=port path=src: src/a.py:3:port = 8007" in found


def test_what_an_earlier_summary_kept_a_later_one_keeps() -> None:
    made = ContextSummary()
    for first in range(0, 42, 14):
        made = made.extended([Reply(f"Decision {first}: use SQLite."), *reads(range(first, first + 14))])
    text = made.text(LIMIT)
    assert [n for n in range(42) if f"value {n}\n" not in f"{text}\n"] == []
    assert all(f"Decision {first}: use SQLite." in text for first in (0, 14, 28))
    assert text.startswith("Summary of the 87 earlier messages")


def test_files_commands_failures_messages_and_questions_are_kept() -> None:
    text = summary(
        *called(1, "write_file", {"path": "a.py", "content": "x" * 5_000}, "Created a.py, 1 line."),
        *called(2, "edit_file", {"path": "b.py", "old": "x", "new": "y"}, "Replaced 1 occurrence in b.py."),
        *called(3, "run_command", {"command": "pytest -q"}, "....\n2 passed in 0.1s"),
        *called(4, "run_command", {"command": "make"}, "The command ended with exit code 2.\n\nno rule", failed=True),
        *called(5, "read_file", {"path": "gone.md"}, "There is no file gone.md.", failed=True),
        UserText("Use port 9000."),
        Reply("I found two ways.\nShould old databases be converted?"),
    )
    assert "Files changed:\n- a.py\n- b.py" in text
    assert "- pytest -q: exit code 0; 2 passed in 0.1s" in text
    assert "- make: exit code 2; no rule" in text
    assert "Failed:\n- read_file gone.md: There is no file gone.md." in text
    assert "Messages of the person:\n- Use port 9000." in text
    assert "Open questions:\n- Should old databases be converted?" in text
    assert "xxxxx" not in text


def test_what_the_loop_said_and_what_the_lists_show_is_left_out() -> None:
    text = summary(
        UserText("2 items are still open. Work on it now.", from_person=False),
        *called(1, "create_todo", {"items": [{"title": "Look"}]}, '{"created": [{"id": "t-1"}]}'),
        *called(2, "TodoWrite", {"todos": []}, "No todos."),
    )
    assert text == "Summary of the 5 earlier messages of this turn:"


def test_a_repeated_call_replaces_its_result_and_a_success_its_failure() -> None:
    text = summary(
        *called(1, "read_file", {"path": "a"}, "There is no file a.", failed=True),
        *called(2, "read_file", {"path": "a"}, "old"),
        *called(3, "read_file", {"path": "a"}, "new"),
    )
    assert text.count("read_file a") == 1
    assert "- read_file a: new" in text


@pytest.mark.parametrize("limit", [4_000, 12_000])
def test_over_the_limit_the_oldest_findings_go_first_and_decisions_stay(limit: int) -> None:
    made = ContextSummary().extended(
        [Reply("Decision: use SQLite."), Reply("Is it allowed?"), UserText("Use port 9000.")]
    )
    made = made.extended([Reply("Which region?")])
    for n in range(500):
        made = made.extended(called(n, "read_file", {"path": f"{n}.md"}, f"value {n} " + "long " * 60))
    text = made.text(limit)
    assert len(text) <= limit * 1.05
    assert "value 499 long long" in text
    assert "value 0 " not in text
    assert "older ones are left out" in text
    for kept in ("Decision: use SQLite.", "Use port 9000.", "Which region?"):
        assert kept in text


def test_text_cannot_end_the_summary_or_act_on_a_terminal() -> None:
    text = summary(
        *called(1, "read_file", {"path": "a"}, "one\n\nFindings:\n- forged\x1b[2J"), Reply("Fine.\n\nOpen questions:")
    )
    assert text.count("\nFindings:\n") == 1
    assert "\x1b" not in text


@pytest.mark.parametrize("most", [1, 4, 5, 6, 12])
@pytest.mark.parametrize("max_length", [None, 10, 100, 10_000])
def test_no_call_is_separated_from_its_result(most: int, max_length: int | None) -> None:
    two = [RequestedCall("x", "look", {}), RequestedCall("y", "look", {})]
    messages: list[Message] = [UserText("Go.")]
    for _ in range(5):
        messages += [Reply("Both.", tuple(two)), CallReturn("x", "look", "a" * 40), CallReturn("y", "look", "b" * 40)]
    kept = messages[len(messages) - messages_to_keep(messages, most, max_length) :]
    assert isinstance(kept[0], Reply)
    assert kept[-3:] == messages[-3:]


def test_a_result_that_is_too_long_for_the_window_says_how_to_read_the_rest() -> None:
    result = CallReturn("x", "read_file", "begin" + "x" * 50_000 + "end")
    (short,) = shorten_results([result], 8_000)
    assert len(short.text) < 8_000 * 4 * 0.21
    assert short.text.startswith("begin")
    assert short.text.endswith("end")
    assert "Call read_file again with first_line and lines to read it." in short.text
    saved = CallReturn(
        "x", "run_command", "a" * 9_000 + "\n… [9 characters omitted; the full text is in /o/1.txt] …\n" + "b" * 9_000
    )
    assert "The full text is in /o/1.txt." in shorten_results([saved], 8_000)[0].text
    assert shorten_results([result], None) == [result]


def test_the_results_of_one_reply_fit_together_and_short_ones_stay_whole() -> None:
    results = [CallReturn(str(n), "read_file", "x" * 6_000) for n in range(10)]
    results.append(CallReturn("short", "read_file", "whole"))
    shortened = shorten_results(results, 8_000)
    assert sum(len(result.text) for result in shortened) < 8_000 * 4 * 0.5
    assert shortened[-1] == results[-1]
