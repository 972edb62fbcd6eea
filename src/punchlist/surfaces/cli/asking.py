"""Asking the person at the terminal whether a call may run."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from punchlist.config import person
from punchlist.kernel.actors import Actor, Role
from punchlist.kernel.text import visible, visible_block
from punchlist.surfaces.cli.front import say

if TYPE_CHECKING:
    from punchlist.toolcalls.approvals import Answer
    from punchlist.toolcalls.states import WaitingToolCall

_WORDS: Final = {
    "proceed_once": ("y", "yes, once"),
    "proceed_always_tool": ("a", "always allow this tool in this session"),
    "proceed_always_prefix": ("p", "always allow {prefixes} in this session"),
    "proceed_always_server": ("s", "always allow every tool of {server} in this session"),
    "modify": ("m", "change the arguments first"),
    "cancel": ("n", "no"),
}


class Terminal:
    """Questions go to stderr, so that stdout stays for results."""

    @classmethod
    def at_hand(cls) -> Terminal | None:
        return cls() if sys.stdin.isatty() and sys.stderr.isatty() else None

    async def ask(self, call: WaitingToolCall) -> Answer | None:
        from punchlist.tools.definition import in_thread

        # A thread that waits for a key cannot be stopped; this one does not keep the program from ending.
        answer: Answer | None = await in_thread(self._ask, {"call": call})
        return answer

    def _ask(self, call: WaitingToolCall) -> Answer | None:
        from punchlist.toolcalls.approvals import Answer, Outcome

        question = call.question
        prefixes = " / ".join(map(" ".join, question.prefixes))
        say(f"\n{visible(call.request.tool)} wants to run: {visible(question.why)}.", error=True)
        say(f"\n{visible_block(question.text)}\n", error=True)
        keys: dict[str, Outcome] = {}
        for outcome in question.outcomes:
            key, words = _WORDS[outcome]
            keys[key] = outcome
            say(f"  {key}  {visible(words.format(prefixes=prefixes, server=question.server))}", error=True)
        while True:
            typed = _line("? ")
            if typed is None:
                return None
            outcome_or_none = keys.get(typed.strip().lower()[:1])
            if outcome_or_none is None:
                say(f"Please type one of {', '.join(keys)}.", error=True)
                continue
            by = Actor(Role.PERSON, person())
            if outcome_or_none is Outcome.CANCEL:
                return Answer(outcome_or_none, by, reason=(_line("Why not? (the model is told) ") or "").strip())
            if outcome_or_none is Outcome.MODIFY:
                arguments = _edited(call.request.arguments)
                if arguments is None:
                    continue
                return Answer(outcome_or_none, by, arguments)
            return Answer(outcome_or_none, by)


def _line(prompt: str) -> str | None:
    print(prompt, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    return line if line else None


def _edited(arguments: Any) -> Any | None:
    """Other arguments, from the person's editor or from one line; None when there are none."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if editor:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "arguments.json"
            file.write_text(json.dumps(dict(arguments), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
            subprocess.run([*shlex.split(editor), str(file)], check=False)
            written = file.read_text(encoding="utf-8")
    else:
        written = _line("New arguments as JSON: ") or ""
    try:
        return json.loads(written)
    except ValueError as error:
        say(f"That is not JSON ({error}).", error=True)
        return None
