"""Whether one text names the same task as another, in other words. Pure.

It decides which unfinished item a text of an agent ends, so it is strict. A text is a rewording if it says the same
with more or with fewer words: forms of a word, common abbreviations, verbs of one meaning, and a file with and without
its extension count as one word, and particles of Chinese and Japanese do not count. A word that is replaced by
another makes another task (“Test the parser”, “Test the lexer”), and so do a negation, another
direction (“from A to B”, “from B to A”), and, where the text ends the task, a part of it that is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

_FILLERS: Final = frozenset({"an", "the", "all", "and", "or", "of", "to", "in", "on", "for", "with", "it", "its"})
_CONJUNCTIONS: Final = frozenset({"and", "&", "plus"})
_DIRECTIONS: Final = frozenset({"from", "to", "into", "before", "after", "over"})
_NEGATIONS: Final = frozenset(
    {
        "not",
        "no",
        "never",
        "without",
        "except",
        "instead",
        "skip",
        "don't",
        "don’t",
        "dont",
        "doesn't",
        "won't",
        "can't",
    }
)
_CHARACTERS: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_BREAKS: Final = re.compile("[和与與及跟、，。；：（）/]|以及|并且|然后|(?<!合)并")
_PARTICLES: Final = re.compile("[的了着地のをはが]")
_NEGATING: Final = re.compile("[不没沒未无無非别別勿禁免]|ない|ぬ|ずに|取消|停止|跳过|跳過|中止")
"""Characters that turn a task into another one."""
_FILE: Final = re.compile(r"([^./\\\d][^./\\]*)\.[a-z][a-z0-9]{0,4}")
_NAME_CHARACTERS: Final = frozenset("0123456789./\\_:#@")
_VOWELS: Final = frozenset("aeiouy")
_MIN_STEM: Final = 3
_ONE_MEANING: Final = (
    ("write", "wrote", "written", "add", "create", "implement", "build", "built", "make", "made", "define"),
    ("fix", "repair", "correct", "resolve"),
    ("update", "change", "modify", "adjust", "edit"),
    ("remove", "delete"),
    ("run", "ran", "execute"),
    ("verify", "check", "validate"),
    ("refactor", "restructure"),
    ("investigate", "examine", "inspect", "analyze", "analyse"),
    ("buy", "bought", "purchase"),
    ("begin", "began", "begun", "start"),
    ("improve", "enhance"),
    ("configure", "setup"),
    ("find", "found"),
    ("send", "sent"),
    ("documentation", "docs", "doc"),
    ("authentication", "auth"),
    ("configuration", "config"),
    ("database", "db"),
    ("repository", "repo"),
    ("environment", "env"),
    ("application", "app"),
    ("function", "func"),
    ("parameter", "param"),
    ("dependency", "dep"),
)


SIMILAR: Final = 0.6
"""How similar the words of a reworded item are to those before, from 0 to 1."""


def is_same_task(before: str, after: str) -> bool:
    return before == after or similarity(before, after, ends=False) >= SIMILAR


def similarity(before: str, after: str, *, ends: bool) -> float:
    """How similar two texts of one task are, up to 1; 0 if they name different tasks.

    `ends`: the second text ends the task, so it may not leave out a part of it.
    """
    old, new = _words(before), _words(after)
    had, has = _same_files({_stem(word) for word in old}, {_stem(word) for word in new})
    if not (had <= has or has <= had) or _negated(had ^ has) or _directed_elsewhere(before, after):
        return 0.0
    if ends and has < had and (_parts(before) > _parts(after) or _CHARACTERS.search(before)):
        return 0.0
    return 2 * len(had & has) / (len(had) + len(has))


def _words(text: str) -> list[str]:
    words = [part for word in _split(text) if word for part in _without_particles(word)]
    return [word for word in words if word not in _FILLERS] or words


def _without_particles(word: str) -> list[str]:
    """The words in a text of Chinese or Japanese, which has no blanks: its parts between conjunctions.

    Particles are left out: they are often not written. A part that is longer than another one is another word.
    """
    if not _CHARACTERS.search(word):
        return [word]
    return [_PARTICLES.sub("", part) or part for part in _BREAKS.split(word) if part]


def _same_files(old: set[str], new: set[str]) -> tuple[set[str], set[str]]:
    """A file that one text names with its extension and the other one without it is the same word."""
    return {_bare(word, new) for word in old}, {_bare(word, old) for word in new}


def _bare(word: str, others: set[str]) -> str:
    found = _FILE.fullmatch(word)
    if found is None or word in others:
        return word
    bare = _stem(found[1])
    return bare if bare in others else word


def _split(text: str) -> list[str]:
    return [word.strip("“”\"'`()[]{},;:.!?…") for word in text.casefold().split()]


def _stem(word: str) -> str:
    """One form of a word: of a name the name itself, of others without ending."""
    if len(word) == 1 or not _NAME_CHARACTERS.isdisjoint(word):
        return word
    return _meanings().get(stem := _without_ending(word), stem)


def _without_ending(word: str) -> str:
    if word.endswith("ies") and len(word) > _MIN_STEM + 2:
        return word[:-3] + "y"
    for ending in ("s", "ing", "ed", "e"):
        stem = word.removesuffix(ending)
        if len(stem) >= _MIN_STEM and not _VOWELS.isdisjoint(stem):
            word = stem
    return word[:-1] if len(word) > _MIN_STEM and word[-1] == word[-2] else word


@cache
def _meanings() -> Mapping[str, str]:
    return {_without_ending(word): group[0] for group in _ONE_MEANING for word in group}


def _negated(words: Iterable[str]) -> bool:
    words = set(words)
    return not _negation_stems().isdisjoint(words) or any(_NEGATING.search(word) for word in words)


@cache
def _negation_stems() -> frozenset[str]:
    return frozenset(_stem(word) for word in _NEGATIONS)


def _directed_elsewhere(before: str, after: str) -> bool:
    """The same words in another order, around a word that says in which direction."""
    old, new = _split(before), _split(after)
    if _DIRECTIONS.isdisjoint(old) or _DIRECTIONS.isdisjoint(new):
        return False
    both = {_stem(word) for word in old} & {_stem(word) for word in new} - _FILLERS
    return [stem for word in old if (stem := _stem(word)) in both] != [
        stem for word in new if (stem := _stem(word)) in both
    ]


def _parts(text: str) -> int:
    return sum(word in _CONJUNCTIONS for word in _split(text)) + text.count(",") + text.count(";")
