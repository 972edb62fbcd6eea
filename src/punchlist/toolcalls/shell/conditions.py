"""Parses conditions in double brackets, `[[ … ]]`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from punchlist.toolcalls.shell.model import NAME, WrapperWord
from punchlist.toolcalls.shell.redirections import BLANKS, RedirectionParser

_COMPARES_NUMBERS: Final = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge"}


class ConditionParser(RedirectionParser):
    """Parses conditions."""

    def condition(self) -> None:
        """`[[ … ]]`. A plain sh takes it for a command named `[[`, and what follows `&&` in it for another."""
        words: list[WrapperWord] = []
        self.blanks()
        while True:
            char = self.peek()
            if self.text.startswith(("&&", "||"), self.at):
                self.at += 2
                self.newlines()
                self.after_and()
            elif char in {"(", ")"} or (char == "<" and self.peek(1) != "("):
                self.at += 1
            elif char in {"", ";", "&", "|", "\n"} or (char == ">" and self.peek(1) != "("):
                raise self.stop("bash and sh do not agree what [[ … ]] is,")
            else:
                words.append(self.word())
                if words[-1].raw == "]]":
                    break
            self.condition_blanks()
        self.condition_numbers(words)

    def condition_blanks(self) -> None:
        self.take(BLANKS)
        if self.peek() == "#":
            raise self.stop("bash and sh do not agree what [[ … ]] is,")

    def after_and(self) -> None:
        if not re.compile(r"(?:![ \t]+)*-[a-zA-Z][ \t]").match(self.text, self.at):
            self.found.doubt("Bash and sh do not agree what [[ … ]] is.")

    def condition_numbers(self, words: Sequence[WrapperWord]) -> None:
        for at, word in enumerate(words):
            if word.text in _COMPARES_NUMBERS:
                for operand in words[max(at - 1, 0) : at + 2 : 2]:
                    self.compute(operand.raw)
            elif word.text in {"-v", "-R"} and not re.fullmatch(NAME, words[min(at + 1, len(words) - 1)].raw):
                self.found.doubt("Which variable [[ looks up is not known before it runs.")
