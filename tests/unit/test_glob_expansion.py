"""What patterns on a command line match, and their limits (S4)."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from punchlist.toolcalls.expanded_command import expand
from punchlist.toolcalls.folders import Folders
from punchlist.toolcalls.glob_expansion import MAX_ENTRIES, MAX_MATCHES, MAX_PARTS, GlobExpansion, UnknownMatches
from punchlist.toolcalls.paths import PathResolver
from punchlist.toolcalls.shell import parse
from punchlist.toolcalls.shell.patterns import alternatives, literal

pytestmark = pytest.mark.spec("S4")

NAMES = (
    "a",
    "ab",
    "b.py",
    "c.md",
    ".hid",
    "d/a",
    "d/e.py",
    "d/.git/x",
    "x[1]",
    "x1",
    "y{z}",
    "-o",
    "a b",
    "q*q",
    "bc]",
)
PATTERNS = (
    "*",
    "?",
    "*.py",
    "*/*",
    "d/*.py",
    ".h*",
    "[ab]",
    "[!a]*",
    "[a-c]*",
    "x[1]",
    "x\\[1]",
    "'x['1]",
    "{a,b.py}",
    "{a,c}*",
    "y{z}",
    "y'{z}'",
    "d/{a,e}*",
    "{1..3}",
    "-o.c{l..l}x",
    "{a..e..2}",
    "{08..11}",
    "{-2..01}",
    "{3..1}",
    "{x,{y,q}}*",
    "'q*'q",
    "q\\*q",
    '"a "*',
    "nothing*",
    "d/../a*",
    "./a*",
    "d//*",
    "*/.git/*",
    "d/.g*",
    "*c]",
    "[b]c]",
    "**/a",
    "{a,b}{c,}",
    "a{b,}",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in NAMES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.skipif(shutil.which("bash") is None, reason="compares with bash")
def test_every_word_that_bash_makes_of_a_pattern_is_looked_at(pattern: str, folder: Path) -> None:
    ran = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {pattern}"], cwd=folder, capture_output=True, text=True, timeout=10, check=True
    )
    paths = PathResolver(folder)
    found = expand(parse(f"ls {pattern}").commands[0], Folders(paths))
    assert {*ran.stdout.split("\0")[:-1]} <= {*found.words, *found.other_paths}
    assert not found.unknown


def test_too_many_files_are_not_looked_at(tmp_path: Path) -> None:
    for number in range(MAX_MATCHES + 1):
        (tmp_path / f"{number}.txt").touch()
    assert GlobExpansion().matches("1?.txt", str(tmp_path)) == [f"{number}.txt" for number in range(10, 20)]
    with pytest.raises(UnknownMatches):
        GlobExpansion().matches("*.txt", str(tmp_path))
    reads = GlobExpansion()
    # A folder is read once for a line, whatever its patterns are.
    for number in range(2 * MAX_ENTRIES // (MAX_MATCHES + 1)):
        assert reads.matches(f"nothing{number}*", str(tmp_path)) == []
    for number in range(MAX_ENTRIES // (MAX_MATCHES + 1)):
        (tmp_path / f"folder{number}").mkdir()
        for name in range(MAX_MATCHES + 1):
            (tmp_path / f"folder{number}" / f"{name}").touch()
    with pytest.raises(UnknownMatches):
        GlobExpansion().matches("folder*/nothing*", str(tmp_path))


@pytest.mark.parametrize("pattern", ["*/.." * (MAX_PARTS + 1), "/proc/self/cwd/*", "*/../" * 30 + "*"])
def test_patterns_that_are_long_or_about_processes_are_unknown(pattern: str, folder: Path) -> None:
    with pytest.raises(UnknownMatches):
        GlobExpansion().matches(pattern, str(folder))


def test_hostile_patterns_take_no_time(tmp_path: Path) -> None:
    (tmp_path / ("a" * 250)).touch()
    began = time.thread_time()
    assert GlobExpansion().matches("*a" * 100 + "b", str(tmp_path)) == []
    assert alternatives("{a,b}" * 30) is None
    assert alternatives("{" * 5_000 + "a,b" + "}" * 5_000) is None
    assert time.thread_time() - began < 1


def test_a_long_or_uncertain_sequence_is_unknown() -> None:
    assert alternatives("e{w..z}/x") == ("ew/x", "ex/x", "ey/x", "ez/x")
    for pattern in ("{1..100000}", "{1..99999999999}", "{Z..a}", "{a..bc}", "{1..a}", "{a..}", "{\\a..c}"):
        assert alternatives(pattern) is None


def test_a_text_without_a_match_is_left(folder: Path) -> None:
    assert literal("x\\*y") == "x*y"
    assert alternatives("a{b,c\\,d}e") == ("abe", "ac\\,de")
    assert alternatives("{a") is None
