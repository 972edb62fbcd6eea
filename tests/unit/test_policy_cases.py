"""The table of policy cases: what runs unprompted, what is asked about, what is denied (S4)."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from tests.conftest import ROOT
from tests.cpu_time import nominal_milliseconds

from punchlist.config import load
from punchlist.toolcalls.always import offered_coverage
from punchlist.toolcalls.paths import PathResolver
from punchlist.toolcalls.policy import Mode, Policy, Rule, Verdict
from punchlist.tools.function_tool import FunctionTool
from punchlist.tools.settings import load_tool_settings
from punchlist.tools.tool_session import native_tools
from punchlist.tools.workspace import Workspace
from punchlist.trust import Trust

pytestmark = pytest.mark.spec("S4")

TABLES: Final = [Path(__file__).with_name(name) for name in ("policy_cases.txt", "policy_cases_paths.txt")]
PLACE: Final = "$PWD_PLACEHOLDER"
"""Stands for the folder of the workspace in the table."""


class Case(NamedTuple):
    section: str
    policy: tuple[str, ...]
    verdict: Verdict
    line: str


def cases() -> Iterator[Case]:
    section, closed = "", False
    policy: list[str] = []
    for text in (line for table in TABLES for line in table.read_text().splitlines()):
        if text.startswith("## "):
            section, policy, closed = text[3:], [], False
        elif found := re.match(r"(allow|ask|deny) *\| (.*)", text):
            closed = True
            yield Case(section, tuple(policy), Verdict(found[1]), found[2].replace("\\n", "\n"))
        elif text and not text.startswith("#"):
            assert not closed, text
            policy.append(text)


CASES: Final = list(cases())


async def _run(line: str) -> str:
    return line


TOOL: Final = FunctionTool(_run, name="run_command", command=lambda line: line)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("cases")
    root, outside = place / "work", place / "elsewhere"
    folders = (
        "src",
        "docs",
        "scripts",
        "build",
        ".git/hooks",
        "other/bare/refs",
        "other/bare/hooks",
        "evil/.claude",
        "sub",
        "pkg/punchlist",
    )
    for folder in folders:
        (root / folder).mkdir(parents=True)
    outside.mkdir()
    for file in (
        "other/bare/HEAD",
        "src/app.py",
        "docs/a.md",
        "scripts/deploy",
        "deploy.sh",
        "other.sh",
        "other/deploy.sh",
        "evil/.claude/settings.json",
        "src/b.py",
        "punchlist.toml",
        "secrets.txt",
        ".git/config",
        "a.md",
    ):
        (root / file).write_text("")
    (outside / "secret").write_text("")
    (root / "outside").symlink_to(outside)
    (root / "alias").symlink_to("deploy.sh")
    (root / "shadow.txt").symlink_to(outside / "secret")
    (root / "rmlink").symlink_to(os.path.realpath("/bin/rm"))
    (root / "ex").symlink_to(outside)
    (root / "lnk.txt").symlink_to(outside / "secret")
    (root / "gl").symlink_to(root / ".git")
    (root / "sub/deep").symlink_to(root / ".git")
    (root / "sub/pl").symlink_to(root / "punchlist.toml")
    (root / "-o").symlink_to(outside / "secret")
    (root / "seclink").symlink_to(root / "secrets.txt")
    return root


def policy_of(said: tuple[str, ...], root: Path) -> Policy:
    policy = Policy(Mode.DEFAULT, paths=PathResolver(root))
    rules: list[Rule] = []
    for line in said:
        word, _, rest = line.partition(" ")
        if word == "mode":
            policy = Policy(Mode(rest), paths=policy.paths)
        elif word == "always":
            always(policy, rest)
        elif rest == "tool":
            rules.append(Rule(Verdict(word), "run_command"))
        else:
            commands = tuple(tuple(command.split()) for command in re.split(" / ", rest))
            rules.append(Rule(Verdict(word), "run_command", commands=commands))
    return Policy(policy.mode, rules, policy.session_rules, paths=policy.paths)


def always(policy: Policy, line: str) -> None:
    """Answer "always for this prefix" to a line."""
    arguments = {"line": line}
    coverage = offered_coverage(policy, TOOL, arguments, policy.judge(TOOL, arguments))
    assert coverage.prefixes or coverage.lines, line
    policy.session_rules.append(
        Rule(Verdict.ALLOW, "run_command", commands=coverage.prefixes, lines=coverage.lines, source="always")
    )


@pytest.mark.parametrize("case", CASES, ids=[f"{case.verdict} {case.line}" for case in CASES])
def test_a_command_line_is_judged_as_the_table_says(case: Case, workspace: Path) -> None:
    policy = policy_of(case.policy, workspace)
    decision = policy.decide(TOOL, {"line": case.line.replace(PLACE, str(workspace))})
    assert decision.verdict is case.verdict, f"{case.section}: {decision.why}"


def test_a_line_of_200_characters_is_judged_in_a_millisecond(workspace: Path) -> None:
    policy = policy_of(CASES[0].policy, workspace)
    line = (
        "git status --short && git diff --stat HEAD~3..HEAD -- src/app.py docs/a.md | head -n 40; grep -rn 'TODO' src "
        "docs --include='*.py' | sort -u | uniq -c | sort -rn | head -20 && cargo test --release -p app"
    )
    assert len(line) >= 200
    assert policy.decide(TOOL, {"line": line}).verdict is Verdict.ALLOW
    assert nominal_milliseconds(lambda: policy.decide(TOOL, {"line": line})) < 1


HOSTILE: Final = {
    "quoted texts": ("x{} ", "'b c' ", ""),
    "pipes": ("a{}", "|a", ""),
    "commands": ("a{};", "a;", ""),
    "substitutions": ("a{} ", "$(a)", ""),
    "substitutions in a text": ("x{} '", "$(a) ", "'"),
    "words of a launcher": ("uv run a{} ", "a ", ""),
    "programs of a launcher": ("uv run git{} ", "git ", ""),
    "denied programs": ("uv run x{} ", "rm ", ""),
    "denied programs in texts": ("x{} ", "'rm b' ", ""),
    "denied programs in a text": ("x{} '", "rm;", "'"),
    "texts of a launcher": ("ssh h{} ", "'uv a' ", ""),
    "texts in a script": ("sh -c 'x{} ", '"a b" ', "'"),
    "unknown texts": ("x{} ", "'$a b' ", ""),
    "assigned texts": ("x{} ", "a=b=' ' ", ""),
    "attached texts": ("x{} ", "-a' b' ", ""),
    "paths": ("x{} ", "./a ", ""),
    "paths in a text": ("x{} '", "./a;", "'"),
    "wrappers": ("env x{} ", "env ", ""),
    "wrappers of a denied program": ("env x{} ", "env rm ", ""),
    "a here-document": ("x{} <<E\n", "a\n", "E\n"),
    "a here-document with a denied program": ("x{} <<E\n", "rm\n", "E\n"),
    "folders": ("cd a{};", "cd b;", ""),
    "JSON": ('x -d \'{{"a{}": ', '["b", {"c": 1}], ', "1}'"),
}
"""Lines that are filled up to 200 characters: how they begin, what is repeated, how they end."""


@pytest.mark.parametrize("shape", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_line_of_200_characters_is_judged_in_a_millisecond(
    shape: tuple[str, str, str], workspace: Path
) -> None:
    beginning, repeated, end = shape
    policy = policy_of(("deny rm -rf", "deny npm publish", "deny git push --force", "allow tool"), workspace)
    numbers = itertools.count(100)

    def judge() -> None:
        # Each line is a new one, so that no cache knows it.
        start = beginning.format(next(numbers))
        line = start + repeated * ((200 - len(start) - len(end)) // len(repeated)) + end
        policy.decide(TOOL, {"line": line})

    assert nominal_milliseconds(judge) < 1


def test_the_table_is_as_large_as_promised() -> None:
    everyday = [case for case in CASES if case.section.startswith("Everyday")]
    assert len(CASES) >= 300
    assert len(everyday) >= 60
    assert {case.verdict for case in everyday} == {Verdict.ALLOW}


DOCUMENTED: Final = {
    "rm -rf x": "deny",
    "rm -fr x": "deny",
    "rm -r -f x": "deny",
    "rm --recursive --force x": "deny",
    "rm x -rf": "deny",
    "git push --force": "deny",
    "git push -f": "deny",
    "git push --force-with-lease": "deny",
    "git push --mirror": "deny",
    "git push origin +main": "deny",
    "rm x": "ask",
    "git push": "ask",
}
"""What docs/tool-calls.md says about the rules in docs/configuration.md."""


def test_the_examples_of_the_documents_hold(workspace: Path, tmp_path: Path) -> None:
    block = next(
        text
        for text in re.findall(r"```toml\n(.*?)```", (ROOT / "docs/configuration.md").read_text(), re.DOTALL)
        if "[[policy.rules]]" in text
    )
    (tmp_path / ".git").mkdir()
    (tmp_path / "punchlist.toml").write_text(block)
    trust = Trust(tmp_path / "data")
    trust.trust(tmp_path / "punchlist.toml")
    found = load_tool_settings(load(environment={"HOME": str(tmp_path / "home")}, cwd=tmp_path), trust)
    policy = Policy(found.policy.mode or Mode.DEFAULT, found.policy.rules, paths=PathResolver(tmp_path))
    decided = {line: policy.decide(TOOL, {"line": line}).verdict.value for line in DOCUMENTED}
    assert decided == DOCUMENTED
    write = next(tool for tool in native_tools(Workspace(tmp_path)) if tool.name == "write_file")
    for path, verdict in {
        "docs/a.md": "allow",
        "docs/sub/../../src/y": "ask",
        f"{tmp_path}/docs/a.md": "allow",
    }.items():
        assert policy.decide(write, {"path": path, "content": ""}).verdict.value == verdict, path
    text = (ROOT / "docs/tool-calls.md").read_text()
    for form in ("rm -fr", "rm -r -f x", "rm --recursive --force", "rm x -rf", "--force-with-lease", "+main"):
        assert form in text
