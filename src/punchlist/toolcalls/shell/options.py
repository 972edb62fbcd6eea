"""Compares options however they are written: `-rf`, `-r -f`, `--recursive --force`, in any place.

A group has the names of one option. One letter is a short option; a longer name can have one dash or two. A letter
before `>` stands for several groups: `D>d,f` means that -D is -d with -f.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import Final

from punchlist.toolcalls.shell.programs import has_subcommands, program_of, same_subcommand, subcommand_at

_USUAL: Final = (
    "r R recursive|f force|v verbose|q quiet silent|a all|y yes assume-yes|i interactive|g global|n dry-run|"
    "A all|o output|u user|p parents"
)
_GROUPS: Final = {
    "rm": "r R recursive|f force|i interactive|d dir|v verbose|one-file-system|no-preserve-root",
    "cp": "r R recursive|f force|a archive|n no-clobber|l link|s symbolic-link|t target-directory",
    "mv": "f force|n no-clobber|t target-directory",
    "ln": "s symbolic|f force",
    "chmod": "R recursive",
    "chown": "R recursive",
    "chgrp": "R recursive",
    "kill": "9 KILL SIGKILL|s signal|15 TERM SIGTERM",
    "tar": "x extract get|c create|t list|r append|u update|f file|z gzip gunzip|j bzip2|J xz|C directory|"
    "I use-compress-program|P absolute-names|d diff compare",
    "sed": "i in-place|e expression|n quiet silent|E r regexp-extended|f file",
    "curl": "X request|d data data-raw data-binary data-urlencode|o output|O remote-name|k insecure|T upload-file|"
    "F form|H header|u user|x proxy|K config|I head|L location|J remote-header-name",
    "wget": "O output-document|r recursive|i input-file|P directory-prefix|q quiet",
    "rsync": "a archive|r recursive|e rsh|n dry-run|"
    "delete del delete-before delete-during delete-delay delete-after delete-excluded",
    "find": "delete|exec execdir ok okdir",
    "docker run": "d detach|i interactive|t tty|v volume|p publish|e env|u user|w workdir|privileged|m memory",
    "docker": "f force|a all|v volumes|q quiet",
    "podman": "f force|a all|v volumes|q quiet|privileged",
    "kubectl": "f filename|l selector|n namespace|A all-namespaces|R recursive|k kustomize",
    "npm": "g global|D save-dev|f force|S save|y yes|w workspace",
    "pip": "r requirement|e editable|U upgrade|t target|y yes|q quiet",
    "apt": "y yes assume-yes|q quiet|f fix-broken",
    "apt-get": "y yes assume-yes|q quiet|f fix-broken",
    "terraform": "auto-approve",
    "git push": "f force force-with-lease force-if-includes mirror|d delete|n dry-run|u set-upstream|o push-option",
    "git clean": "f force|d|x|X|n dry-run|i interactive|e exclude",
    "git branch": "d delete|f force|m move|a all|r remotes|c copy|D>d,f|M>m,f|C>c,f",
    "git tag": "d delete|f force|a annotate|s sign|m message|l list",
    "git commit": "a all|m message|n no-verify|s signoff|S gpg-sign|F file|amend",
    "git add": "A all no-ignore-removal|u update|f force|n dry-run|p patch|i interactive|N intent-to-add",
    "git rm": "r|f force|n dry-run|cached",
    "git checkout": "f force|b|B|t track|m merge|p patch",
    "git switch": "f force discard-changes|c create|C force-create|d detach",
    "git reset": "q quiet|p patch|N intent-to-add|hard|soft|mixed",
    "git rebase": "i interactive|x exec|f force-rebase no-ff|s strategy",
    "git fetch": "f force|p prune|t tags|a append",
    "git pull": "f force|r rebase|p prune|t tags",
    "git stash": "u include-untracked|a all|p patch|k keep-index|m message|q quiet",
    "git worktree": "f force|b|B|d detach",
    "git merge": "m message|s strategy|X strategy-option|n no-stat",
    "git log": "p u patch|n max-count|S|G|L",
    "git config": "f file|e edit|l list|add|unset|global|system",
}
# Arguments without a dash that mean an option: `git push origin +main` is a forced push.
_WORDS: Final = {"git push": ((re.compile(r"\+."), "--force"), (re.compile(":."), "--delete"))}
# The first argument is a group of letters, with a dash or without.
_BARE_LETTERS: Final = frozenset(("tar", "gtar", "bsdtar", "ar", "ps"))


@cache
def _names(scope: str) -> tuple[dict[str, str], dict[str, frozenset[str]]]:
    """The group of each name, and the groups that a letter stands for."""
    groups: dict[str, str] = {}
    several: dict[str, frozenset[str]] = {}
    for group in _GROUPS.get(scope, _GROUPS.get(scope.split(maxsplit=1)[0], _USUAL)).split("|"):
        letter, stands_for, parts = group.partition(">")
        if stands_for:
            several[letter] = frozenset(groups.get(part, part) for part in parts.split(","))
            continue
        names = group.split()
        for name in names:
            groups.setdefault(name, names[0])
    return groups, several


def option_scope(words: Sequence[str]) -> str:
    """The program, with its subcommand if it has one: the meaning of options depends on it."""
    program = program_of(words[0])
    at = subcommand_at(words) if has_subcommands(program) else None
    return program if at is None or at >= len(words) else f"{program} {same_subcommand(program, words[at])}"


def option_names(scope: str, words: Iterable[str]) -> set[str]:
    """What the options among the arguments mean, by the first name of their group, and each option as written."""
    found: set[str] = set()
    written = list(words)
    if written and scope in _BARE_LETTERS and re.fullmatch("[A-Za-z]+", written[0]):
        written[0] = f"-{written[0]}"
    for word in written:
        for pattern, option in _WORDS.get(scope, ()):
            if pattern.match(word):
                found |= _meaning(scope, option)
        if is_option(word):
            found.add(word)
            found |= _meaning(scope, word)
    return found


def is_option(word: str) -> bool:
    return len(word) > 1 and word[0] == "-" and word != "--"


def has_option(scope: str, found: set[str], option: str) -> bool:
    """Whether an option of a rule is among those that `option_names` found."""
    return option in found or required(scope, option) <= found


@lru_cache(maxsize=512)
def required(scope: str, option: str) -> frozenset[str]:
    """What an option of a rule means: every letter of `-rf`."""
    if option.startswith("--") or option[1:] in _names(scope)[0]:
        return frozenset(list(_long(scope, option.lstrip("-")))[:1])
    return frozenset(name for letter in option[1:] for name in _letter(scope, letter))


def _meaning(scope: str, word: str) -> set[str]:
    if word.startswith("--"):
        return set(_long(scope, word[2:]))
    letters = {name for letter in word[1:].partition("=")[0] for name in _letter(scope, letter)}
    name = word[1:].partition("=")[0]
    groups = _names(scope)[0]
    return letters | {groups[name]} if len(name) > 1 and name in groups else letters


def _letter(scope: str, letter: str) -> frozenset[str]:
    groups, several = _names(scope)
    return several.get(letter) or frozenset((groups.get(letter, letter),))


def _long(scope: str, option: str) -> Iterator[str]:
    """The groups that a long option can mean: many programs accept the beginning of its name."""
    name = option.partition("=")[0]
    groups = _names(scope)[0]
    if name in groups:
        yield groups[name]
        return
    yield name
    if name:
        yield from {group for long, group in groups.items() if len(long) > 1 and long.startswith(name)}
