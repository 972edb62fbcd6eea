"""Asks the person at the terminal to approve a tool call."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from punchlist.config import current_user
from punchlist.kernel.actors import Actor, Role
from punchlist.kernel.text import visible, visible_block

if TYPE_CHECKING:
    from punchlist.toolcalls.approvals import ApprovalAnswer, ApprovalOutcome
    from punchlist.toolcalls.model import WaitingToolCall
    from punchlist.toolcalls.tool import Arguments

_WORDS: Final = {
    "proceed_once": ("y", "yes, once"),
    "proceed_always_tool": ("a", "always allow this tool in this session"),
    "proceed_always_prefix": ("p", "always allow {prefixes} in this session"),
    "proceed_always_server": ("s", "always allow every tool of {server} in this session"),
    "modify": ("m", "change the arguments first"),
    "cancel": ("n", "no"),
}


class ApprovalPrompt:
    """Asks on the controlling terminal, even when stderr is redirected."""

    def __init__(self, screen: TextIO) -> None:
        self._screen = screen
        self.before_asking: Callable[[], None] = lambda: None

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

        self.before_asking()
        keys = self._show(call)
        if problem:
            self._say(f"\nThat answer was refused: {visible_block(problem)}")
        by = Actor(Role.PERSON, current_user())
        while (typed := self._line("? ")) is not None:
            outcome = keys.get(typed.strip().lower()[:1])
            if outcome is None:
                self._say(f"Please type one of {', '.join(keys)}.")
            elif outcome is ApprovalOutcome.CANCEL:
                return ApprovalAnswer(outcome, by, reason=(self._line("Why? (the model sees it) ") or "").strip())
            elif outcome is not ApprovalOutcome.MODIFY:
                return ApprovalAnswer(outcome, by)
            elif (arguments := self._edited(call.request.arguments)) is not None:
                return ApprovalAnswer(outcome, by, arguments)
        self._say("\nNo answer. The call waits for one (`punchlist inbox`); Ctrl-C cancels it.")
        return None

    def _show(self, call: WaitingToolCall) -> dict[str, ApprovalOutcome]:
        """Print the question; returns the possible outcomes by key."""
        question = call.question
        prefixes = " / ".join(map(" ".join, question.prefixes))
        self._say(f"\n{visible(call.request.tool)} wants to run: {visible(question.why)}.")
        self._say(f"\n{visible_block(question.text)}\n")
        keys: dict[str, ApprovalOutcome] = {}
        for outcome in question.outcomes:
            key, words = _WORDS[outcome]
            keys[key] = outcome
            self._say(f"  {key}  {visible(words.format(prefixes=prefixes, server=question.server))}")
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
