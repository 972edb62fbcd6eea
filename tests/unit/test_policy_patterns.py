"""Generated patterns in command lines: what runs unprompted is run for real, and reaches nothing it should not (S4).

The seed is fixed; `make soak` tries 5,000 lines.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest
from tests.conftest import SOAK
from tests.unit.test_policy_cases import TOOL

from punchlist.toolcalls.paths import PathResolver
from punchlist.toolcalls.policy import Mode, Policy, Rule, Verdict

pytestmark = [
    pytest.mark.spec("S4"),
    pytest.mark.timeout(3_600 if SOAK else 120),
    pytest.mark.skipif(shutil.which("bash") is None, reason="runs lines in bash"),
    *([pytest.mark.soak] if SOAK else []),
]

LINES: Final = 5_000 if SOAK else 250
PLAIN: Final = ["src/app.py", "docs/a.md", "a.md", "x[1]", "aa/bb/c"]
PROTECTED: Final = ["punchlist.toml", ".mcp.json", ".git/config", ".git/hooks/x", ".claude/settings.json"]
TARGETS: Final = [
    *(*PLAIN, *PROTECTED),
    *("gl/hooks/x", "gl/config", "ex/secret", "lnk.txt", "sub/deep/config", "sub/pl", "cl/settings.json"),
    *("aa/up/gl/config", "aa/up/punchlist.toml", "src/l.py", "docs/o/secret", "x1", "-e"),
]
WRITES: Final = [
    *("cp a.md {}", "tee {} < a.md", "tee -a {} < a.md", "sed -i s/./y/ {}", "sed -i.toml s/./y/ {}", "ln -sf a.md {}"),
    *("dd if=a.md of={}", "cp -r evil/. {}", "cp -t {} a.md", "sort a.md -o {}", "sort -o{} a.md", "cat a.md > {}"),
    *("cd {} && tee config < a.md", "env -C {} tee config < a.md", "bash -c 'cp a.md {}'", "F={}; cp a.md $F"),
    *('for f in {}; do cp a.md "$f"; done', "echo {} | xargs tee", "cp a.md {} docs/a.md", "eval tee {} < a.md"),
]
READS: Final = [
    *("cat {}", "head -n1 -- {}", "grep -r . {}", "grep -e . {}", "grep -f a.md {}", "sort -m {}", "uniq {}", "tac {}"),
    *("cat src/*.py {}", "sed -ne p {}", "awk '{{print}}' {}", "cat < {}", "cd {} && cat secret", "cat -- {}"),
]
PROGRAMS: Final = ("cat", "head", "grep", "sort", "uniq", "tac", "sed", "awk", "cd")


def workspace(place: Path) -> Path:
    shutil.rmtree(place, ignore_errors=True)
    root, outside = place / "work", place / "outside"
    for folder in ("src", "docs", ".git/hooks", "sub", ".claude", "evil/.claude", "aa/bb", "../outside"):
        (root / folder).mkdir(parents=True)
    for name in (*PLAIN, "evil/.claude/settings.json"):
        (root / name).write_text("plain\n")
    for name in PROTECTED:
        (root / name).write_text("protected\n")
    (outside / "secret").write_text("SECRET\n")
    links = {"ex": outside, "lnk.txt": outside / "secret", "gl": root / ".git", "sub/deep": root / ".git"}
    links |= {"sub/pl": root / "punchlist.toml", "src/l.py": outside / "secret", "aa/up": root, "docs/o": outside}
    links |= {"x1": outside / "secret", "-e": outside / "secret", "cl": root / ".claude"}
    for name, target in links.items():
        (root / name).symlink_to(target)
    return root


def state(root: Path) -> tuple[list[str], list[bytes]]:
    """The files that define what agents do, and their contents."""
    found = sorted(path for name in (".git", ".claude") for path in (root / name).rglob("*"))
    found += [root / name for name in ("punchlist.toml", ".mcp.json", ".vscode", "opencode.json")]
    return [str(path) for path in found if path.exists()], [path.read_bytes() for path in found if path.is_file()]


def spelled(rng: random.Random, path: str) -> str:
    """A path in which parts are patterns, quotes or braces."""
    parts = [_part(rng, part) for part in path.split("/")]
    before = rng.choice(["", "", "", "", "./", "src/../", "~+/", "*/../", "aa/up/", "**/"])
    return before + "/".join(parts)


def _part(rng: random.Random, part: str) -> str:
    letters = list(part)
    at = rng.randrange(len(letters))
    one = letters[at]
    forms = ["?", "*", f"[{one}]", "[!^]", "[[:print:]]", f"[{one}-{one}]", f"{{{one},q}}", f"{{{one},}}", f"'{one}'"]
    forms += [f"{{{one}..{one}}}", f"\\{one}", f"$'\\x{ord(one):02x}'"]
    letters[at] = rng.choice(forms)
    return rng.choice([part, part, "".join(letters), "".join(letters), part[: at + 1] + "*", "*", f"{{{part},zz}}"])


def run(line: str, root: Path) -> bytes:
    environment = {"PATH": os.environ["PATH"], "HOME": str(root)}
    try:
        ran = subprocess.run(
            ["bash", "-c", "--", line],
            cwd=root,
            capture_output=True,
            timeout=5,
            env=environment,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return b""
    return ran.stdout


def test_no_unprompted_pattern_writes_a_protected_file_or_reads_outside(tmp_path: Path) -> None:
    rng = random.Random(7)
    root = workspace(tmp_path)
    paths = PathResolver(root)
    writing = Policy(Mode.DEFAULT, [Rule(Verdict.ALLOW, "run_command")], paths=paths)
    commands = tuple((program,) for program in PROGRAMS)
    reading = Policy(Mode.DEFAULT, [Rule(Verdict.ALLOW, "run_command", commands=commands)], paths=paths)
    before, unprompted = state(root), 0
    for _ in range(LINES):
        writes = rng.random() < 0.5
        line = rng.choice(WRITES if writes else READS).format(spelled(rng, rng.choice(TARGETS)))
        if (writing if writes else reading).decide(TOOL, {"line": line}).verdict is not Verdict.ALLOW:
            continue
        unprompted += 1
        printed = run(line, root)
        if writes:
            assert state(root) == before, line
            workspace(tmp_path)
        else:
            assert b"SECRET" not in printed, line
    assert unprompted > LINES / 20
