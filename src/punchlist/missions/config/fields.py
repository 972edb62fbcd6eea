"""Reading an object of a mission file: every problem is noted with the way to its field, none ends the reading."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from punchlist.kernel.text import block_problem, excerpt, json_type, line_problem, raw_problem

SLUG: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}", re.ASCII)
LONGEST_SLUG: Final = 63
LARGEST_NUMBER: Final = 1e300
"""A sum or a difference of two such is still a number."""


class Object(dict[str, Any]):
    """An object as JSON tells it, with the keys that it has more than once."""

    twice: tuple[str, ...] = ()

    @classmethod
    def of_pairs(cls, pairs: list[tuple[str, Any]]) -> Object:
        made = cls(pairs)
        if len(made) < len(pairs):
            seen: set[str] = set()
            made.twice = tuple(dict.fromkeys(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]
        return made


@dataclass(frozen=True, slots=True)
class Fields:
    """An object, the way to it such as `pillars[2].metrics[0]`, and where problems are noted."""

    content: Mapping[str, Any]
    where: str
    problems: list[str]
    real: bool = True
    """Not so when there was no object: that has been noted, and nothing is missing in it."""

    @classmethod
    def of(cls, raw: Any, where: str, problems: list[str], *known: str) -> Fields:
        """What is no object is noted and read as an empty one; so is every field that is not known."""
        if not isinstance(raw, dict):
            problems.append(f"{where or 'the file'}: must be an object, got {json_type(raw)}")
            return cls({}, where, problems, real=False)
        made = cls(raw, where, problems)
        for key in raw:
            if key not in known:
                made.wrong(key, f"is not known.{meant(key, known)} There are: {', '.join(known)}")
        for key in getattr(raw, "twice", ()):
            made.wrong(key, "is there more than once")
        return made

    def way(self, key: str) -> str:
        return f"{self.where}.{excerpt(key)}" if self.where else excerpt(key)

    def wrong(self, key: str, problem: str) -> None:
        self.problems.append(f"{self.way(key)}: {problem}")

    def __contains__(self, key: str) -> bool:
        return key in self.content

    def require(self, *keys: str) -> bool:
        missing = [key for key in keys if key not in self.content]
        if self.real:
            for key in missing:
                self.wrong(key, "is required")
        return not missing

    def line(self, key: str, *, longest: int, shortest: int = 0, default: str = "") -> str:
        return self._text(
            key, line_problem(self.content.get(key, default), longest=longest, shortest=shortest), default
        )

    def block(self, key: str, *, longest: int, shortest: int = 0, default: str = "") -> str:
        return self._text(
            key, block_problem(self.content.get(key, default), longest=longest, shortest=shortest), default
        )

    def _text(self, key: str, problem: str | None, default: str) -> str:
        if key not in self.content:
            return default
        if problem:
            self.wrong(key, problem)
            return default
        return str(self.content[key]).strip()

    def choice(self, key: str, options: Collection[str], default: str) -> str:
        value = self.content.get(key, default)
        if not isinstance(value, str) or value not in options:
            self.wrong(key, f"must be one of {', '.join(options)}, got {shown(value)}")
            return default
        return value

    def number(
        self, key: str, default: float, *, least: float = -LARGEST_NUMBER, most: float = LARGEST_NUMBER
    ) -> float:
        value = self.content.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.wrong(key, f"must be a number, got {json_type(value)}")
            return default
        if isinstance(value, float) and not math.isfinite(value):
            self.wrong(key, "must be a finite number")
            return default
        if not least <= value <= most:
            if least == -LARGEST_NUMBER:
                self.wrong(key, "is too large a number")
            else:
                self.wrong(key, f"must be a number from {least:g} to {most:,.0f}, got {shown(value)}")
            return default
        return float(value)

    def whole(self, key: str, default: int, *, least: int, most: int) -> int:
        value = self.content.get(key, default)
        if isinstance(value, float) and value.is_integer():
            # 10.0 is a whole number, to JSON and to JSON Schema.
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            self.wrong(key, f"must be a whole number from {least:,} to {most:,}, got {shown(value)}")
            return default
        return value

    def array(self, key: str, *, most: int) -> list[tuple[str, Any]]:
        """The items with the way to each."""
        value = self.content.get(key, [])
        if not isinstance(value, list):
            self.wrong(key, f"must be an array, got {json_type(value)}")
            return []
        if len(value) > most:
            self.wrong(key, f"at most {most} are possible, got {len(value)}")
            return []
        return [(f"{self.way(key)}[{index}]", item) for index, item in enumerate(value)]

    def words(self, key: str, *, most: int, longest: int) -> list[str]:
        """A command: an array of text, the first of which is not empty."""
        if not self.require(key):
            return []
        value = self.content[key]
        if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
            hint = ", such as " + '["make", "count"]'
            self.wrong(key, f"must be an array of text that is not empty{hint}, got {shown(value)}")
            return []
        if len(value) > most:
            self.wrong(key, f"at most {most} are possible, got {len(value)}")
            return []
        for index, one in enumerate(value):
            problem = raw_problem(one, longest=longest)
            if problem or (index == 0 and not one.strip()):
                self.problems.append(f"{self.way(key)}[{index}]: {problem or 'must not be empty'}")
        return list(value)

    def slug(self, key: str = "slug", *, name: str = "") -> str:
        """As it is written, or else made from a name."""
        if key not in self.content:
            made = slug_of(name)
            if not made and name:
                self.wrong(key, f"is required, since {excerpt(name)!r} has no letters a to z to make one from")
            return made
        value = self.content[key]
        if not isinstance(value, str) or not SLUG.fullmatch(value):
            self.wrong(
                key,
                f"must be 1 to {LONGEST_SLUG} of a-z, 0-9 and -, beginning with a letter or digit, got {shown(value)}",
            )
            return ""
        return value


def slug_of(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:LONGEST_SLUG].rstrip("-")


def meant(name: str, known: Collection[str]) -> str:
    """A question with the name that is nearest to a wrong one, or nothing."""
    bare = {re.sub(r"[-_\s]", "", one).lower(): one for one in known}
    close = get_close_matches(re.sub(r"[-_\s]", "", name[:100]).lower(), list(bare), n=1, cutoff=0.7)
    return f" Did you mean {bare[close[0]]}?" if close else ""


def shown(value: object) -> str:
    match value:
        case str():
            return repr(excerpt(value))
        case bool() | None | list() | dict():
            return json_type(value)
        case int() if abs(value) > 10**15:
            return "a very large number"
    return excerpt(str(value))
