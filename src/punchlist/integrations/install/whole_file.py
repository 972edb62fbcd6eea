"""A file that is ours as a whole, such as a plugin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from punchlist.integrations.install.settings_json import Way
from punchlist.integrations.install.text_edits import EditedText, InsertedText, UneditableFile


@dataclass(frozen=True, slots=True)
class WholeFile:
    what: str
    content: str
    words: tuple[str, ...]

    def merged(self, text: str | None) -> EditedText:
        if text is not None and not self._ours(text):
            raise UneditableFile("is there already and was not made by this command. Move it away, then install again")
        return EditedText(self.content)

    def stripped(
        self, text: str, inserted: tuple[InsertedText, ...] = (), made: tuple[Way, ...] | None = None
    ) -> str | None:
        del inserted, made
        return None if text.strip() and self._ours(text) else text

    def set_back(self, text: str) -> str:
        return text

    def is_empty(self, text: str) -> bool:
        return not text.strip()

    def pieces(self, text: str) -> Iterator[tuple[str, str, list[str]]]:
        if not text:
            yield self.what, "missing", []
        elif not self._ours(text):
            yield self.what, "of somebody else", []
        else:
            yield self.what, "there" if text == self.content else "old", list(self.words)

    def _ours(self, text: str) -> bool:
        """By its first line; somebody may have changed the rest. A file in which there is nothing is nobody's."""
        return not text.strip() or text.lstrip().splitlines()[0] == self.content.splitlines()[0]
