"""Asks the person at the terminal to approve a tool call."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from punchlist.config import current_user
from punchlist.kernel.events import Actor, Role
from punchlist.kernel.text import visible, visible_block
from punchlist.surfaces.cli.context import discard_typed_keys

if TYPE_CHECKING:
    from punchlist.toolcalls.approvals import ApprovalAnswer, ApprovalOutcome
    from punchlist.toolcalls.model import WaitingToolCall
    from punchlist.toolcalls.policy import RuleLifetime
    from punchlist.toolcalls.tool import Arguments

_WORDS: Final = {
    "proceed_once": ("y", "yes, once"),
    "proceed_always_tool": ("a", "always allow {covers}"),
    "proceed_always_prefix": ("p", "always allow {covers}"),
    "proceed_always_server": ("s", "always allow {covers}"),
    "modify": ("e", "edit the arguments first"),
    "cancel": ("n", "no"),
}
_OTHER_KEYS: Final = {"m": "e"}
_LIFETIME_KEYS: Final = {"": "session", "s": "session", "r": "run", "p": "permanent"}
"""The second letter of an "always" answer."""
_MAX_ANSWER_LENGTH: Final = 2


class ApprovalPrompt:
    """Asks on the controlling terminal, even when stderr is redirected."""

    def __init__(self, screen: TextIO) -> None:
        self._screen = screen

    @classmethod
    def from_terminal(cls) -> ApprovalPrompt | None:
        if not sys.stdin.isatty():
            return None
        try:
            return cls(sys.stderr if sys.stderr.isatty() else open(os.ttyname(sys.stdin.fileno()), "w"))
        except OSError:
            return None

    def _say(self, text: str) -> None:
        print(text, file=self._screen, flush=True)

    def _line(self, prompt: str) -> str | None:
        print(prompt, end="", file=self._screen, flush=True)
        line = sys.stdin.readline()
        return line if line else None

    async def ask(self, call: WaitingToolCall, problem: str | None = None) -> ApprovalAnswer | None:
        from punchlist.tools.function_tool import run_in_thread

        # A thread that reads a key cannot be stopped; as a daemon thread it does not delay the exit.
        answer: ApprovalAnswer | None = await run_in_thread(self._ask, {"call": call, "problem": problem})
        return answer

    def _ask(self, call: WaitingToolCall, problem: str | None) -> ApprovalAnswer | None:
        from punchlist.toolcalls.approvals import ApprovalAnswer, ApprovalOutcome

        shown = _current_text(call)
        keys = self._show(call, shown)
        if problem:
            self._say(f"\nThat answer was refused: {visible_block(problem)}")
        by = Actor(Role.PERSON, current_user())
        discard_typed_keys()
        while (typed := self._line("? ")) is not None:
            chosen = _parse(typed, keys)
            if chosen is None:
                self._say(f"Please type one of {', '.join(keys)}.")
                continue
            outcome, lifetime = chosen
            if outcome is ApprovalOutcome.CANCEL:
                return ApprovalAnswer(outcome, by, reason=(self._line("Why? (the model sees it) ") or "").strip())
            if outcome is ApprovalOutcome.MODIFY:
                if (arguments := self._edited(call.request.arguments)) is not None:
                    return ApprovalAnswer(outcome, by, arguments)
            elif (now := _current_text(call)) == shown:
                return ApprovalAnswer(outcome, by, lifetime=lifetime, shown=shown)
            else:
                shown = now
                self._say("\nIt has changed since it was shown. Now it is:")
                self._show(call, shown)
                discard_typed_keys()
        self._say("\nNo answer. The call waits for one (`punchlist inbox`); Ctrl-C cancels it.")
        return None

    def _show(self, call: WaitingToolCall, shown: str) -> dict[str, ApprovalOutcome]:
        """Print the question; returns the possible outcomes by key."""
        from punchlist.toolcalls.always import describe
        from punchlist.toolcalls.approvals import always_rule

        question = call.question
        self._say(f"\n{visible(call.request.tool)} wants to run: {visible(question.why)}.")
        self._say(f"\n{visible_block(shown)}\n")
        keys: dict[str, ApprovalOutcome] = {}
        for outcome in question.outcomes:
            key, words = _WORDS[outcome]
            keys[key] = outcome
            rule = always_rule(outcome, question, call.request.tool)
            self._say(f"  {key}  {visible(words.format(covers=describe(rule) if rule else ''))}")
            if rule is not None:
                self._say(
                    f"     {key} in this session, {key}r only in this run, {key}p permanently; in this project only"
                )
        return keys

    def _edited(self, arguments: Arguments) -> Any | None:
        """Other arguments from the editor, or from one line; None if they are not JSON."""
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
        if editor:
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "arguments.json"
                file.write_text(json.dumps(dict(arguments), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
                subprocess.run([*shlex.split(editor), str(file)], check=False)
                written = file.read_text(encoding="utf-8")
        else:
            written = self._line("New arguments as JSON: ") or ""
        try:
            return json.loads(written)
        except ValueError as error:
            self._say(f"That is not JSON ({error}).")
            return None


def _current_text(call: WaitingToolCall) -> str:
    """What the call would do now: a file can have changed since the question was made."""
    from punchlist.errors import PunchlistError
    from punchlist.toolcalls.validation import question_text

    try:
        return question_text(call.tool, call.request.arguments)
    except PunchlistError as error:
        return f"{call.question.text}\n\nThis is no longer possible: {error}"


def _parse(typed: str, keys: dict[str, ApprovalOutcome]) -> tuple[ApprovalOutcome, RuleLifetime] | None:
    """The outcome and the lifetime of what a person typed: `y`, `yes`, `p`, `pr`."""
    from punchlist.toolcalls.policy import RuleLifetime

    word = typed.strip().lower()
    key, second = _OTHER_KEYS.get(word[:1], word[:1]), word[1:]
    outcome = keys.get(key)
    if outcome is None:
        return None
    if not outcome.startswith("proceed_always") or len(word) > _MAX_ANSWER_LENGTH:
        return outcome, RuleLifetime.SESSION
    lifetime = _LIFETIME_KEYS.get(second)
    return None if lifetime is None else (outcome, RuleLifetime(lifetime))
