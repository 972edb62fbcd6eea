"""May it run, must a person be asked, or is it out of the question? (S4)"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from punchlist.toolcalls.approvals import ApprovalExpiry, OnExpiry
from punchlist.toolcalls.paths import PathResolver
from punchlist.toolcalls.policy import Mode, Policy, Rule, Verdict
from punchlist.toolcalls.tool import Effect, Resources
from punchlist.tools.function_tool import FunctionTool

pytestmark = pytest.mark.spec("S4")

ALLOW, ASK, DENY = Verdict.ALLOW, Verdict.ASK, Verdict.DENY


def made(
    name: str = "thing", effect: Effect = Effect.EXECUTE, server: str | None = None, fingerprint: str | None = None
) -> FunctionTool:
    async def function(path: str = "", n: int = 0) -> str:
        return path

    tool = FunctionTool(function, name=name, effect=effect, resources=_file)
    tool.server = server
    if fingerprint is not None:
        tool.fingerprint = fingerprint  # type: ignore[attr-defined]
    return tool


def _file(path: str = "", n: int = 0) -> Resources:
    return Resources(writes=frozenset({f"file:{path}"}) if path else frozenset())


def shell() -> FunctionTool:
    async def function(line: str) -> str:
        return line

    return FunctionTool(function, name="shell", command=lambda line: line)


def verdict(
    tool: FunctionTool,
    arguments: dict[str, Any] | None = None,
    mode: Mode = Mode.DEFAULT,
    rules: Sequence[Rule] = (),
    session: Sequence[Rule] = (),
) -> Verdict:
    return Policy(mode, rules, session).decide(tool, arguments or {}).verdict


def of_line(line: str, *rules: Rule, mode: Mode = Mode.DEFAULT) -> Verdict:
    return verdict(shell(), {"line": line}, mode, rules)


@pytest.mark.parametrize(
    ("mode", "read", "edit", "execute"),
    [
        (Mode.PLAN, ALLOW, DENY, DENY),
        (Mode.DEFAULT, ALLOW, ASK, ASK),
        (Mode.AUTO_EDIT, ALLOW, ALLOW, ASK),
        (Mode.YOLO, ALLOW, ALLOW, ALLOW),
    ],
)
def test_without_rules_the_mode_decides(mode: Mode, read: Verdict, edit: Verdict, execute: Verdict) -> None:
    assert [verdict(made(effect=effect), mode=mode) for effect in Effect] == [read, ALLOW, edit, execute]


@pytest.mark.parametrize(
    ("pattern", "fits"), [("thing", True), ("th*", True), ("*", True), ("thin", False), ("Th*", False)]
)
def test_a_rule_is_about_a_tool_or_a_pattern(pattern: str, fits: bool) -> None:
    assert (verdict(made(), rules=[Rule(ALLOW, pattern)]) is ALLOW) is fits
    assert (verdict(made(), mode=Mode.YOLO, rules=[Rule(DENY, pattern)]) is DENY) is fits


@pytest.mark.parametrize(
    ("path", "fits"),
    [
        ("docs/a.md", True),
        ("docs/sub/a.md", True),
        ("./docs/a.md", True),
        ("docs//a.md", True),
        ("docs/../secret", False),
        ("docs/../docs/a.md", True),
        ("docs/..", False),
        ("docs", False),
        ("../docs/a.md", False),
        ("src/docs/a.md", False),
        (None, False),
    ],
)
def test_an_allowed_path_is_the_one_that_is_meant(path: str | None, fits: bool) -> None:
    rules = [Rule(ALLOW, arguments={"path": "docs/*"})]
    arguments = {} if path is None else {"path": path}
    assert (verdict(made(effect=Effect.EDIT), arguments, rules=rules) is ALLOW) is fits


@pytest.mark.parametrize(
    "path", ["secret/k", "./secret/k", "x/../secret/k", "secret/../secret/k", "secret//k", "secret/../x"]
)
def test_a_denied_path_is_denied_however_it_is_written(path: str) -> None:
    assert verdict(made(), {"path": path}, Mode.YOLO, [Rule(DENY, arguments={"path": "secret/*"})]) is DENY


@pytest.mark.parametrize("path", ["/etc/passwd", "/etc/./passwd", "/x/../etc/passwd", "///etc/passwd"])
def test_an_absolute_path_is_denied_however_it_is_written(path: str) -> None:
    assert verdict(made(), {"path": path}, Mode.YOLO, [Rule(DENY, arguments={"path": "/etc/*"})]) is DENY


def test_two_slashes_in_front_do_not_get_around_a_rule() -> None:
    assert verdict(made(), {"path": "//etc/passwd"}, Mode.YOLO, [Rule(DENY, arguments={"path": "/etc/*"})]) is DENY


def test_a_rule_about_a_path_is_about_the_file_that_it_really_names(tmp_path: Path) -> None:
    root = tmp_path / "work"
    for folder in ("secrets", "docs", "src"):
        (root / folder).mkdir(parents=True)
    (root / "secrets" / "key").write_text("")
    (root / "door").symlink_to("secrets")
    (root / "docs" / "out").symlink_to(root / "src")
    paths = PathResolver(root)
    denies = Policy(Mode.YOLO, [Rule(DENY, arguments={"path": "secrets/*"})], paths=paths)
    ways = ["secrets/key", "./secrets/key", f"{root}/secrets/key", "src/../secrets/key", "/proc/self/cwd/secrets/key"]
    for path in [*ways, "door/key", "docs/out/../secrets/key", "secrets", "secrets/new/file"]:
        assert denies.decide(made(), {"path": path}).verdict is DENY, path
    for path, expected in {".": ASK, "src": ALLOW, "secrets2/key": ALLOW, "src/secrets.txt": ALLOW}.items():
        assert denies.decide(made(), {"path": path}).verdict is expected, path
    allows = Policy(Mode.DEFAULT, [Rule(ALLOW, arguments={"path": "docs/*"})], paths=paths)
    for path in ("docs/a", f"{root}/docs/a", "src/../docs/a", "/proc/self/cwd/docs/a"):
        assert allows.decide(made(), {"path": path}).verdict is ALLOW, path
    for path in ("docs/sub/../../src/y", "docs/out/y", "/etc/docs/a", "../work/src/y", "docs"):
        assert allows.decide(made(), {"path": path}).verdict is ASK, path


def test_all_that_a_rule_names_must_fit() -> None:
    rule = Rule(ALLOW, "thing", arguments={"path": "docs/*", "n": "1"}, modes=frozenset({Mode.DEFAULT}))
    assert verdict(made(), {"path": "docs/a", "n": 1}, rules=[rule]) is ALLOW
    assert verdict(made(), {"path": "docs/a", "n": 2}, rules=[rule]) is ASK
    assert verdict(made(), {"path": "docs/a", "n": 1}, Mode.AUTO_EDIT, [rule]) is ASK


def test_of_asking_and_allowing_rules_the_first_that_fits_decides() -> None:
    rules = [Rule(ALLOW, "thing", arguments={"path": "docs/*"}), Rule(ASK, "thing"), Rule(ALLOW, "thing")]
    assert verdict(made(), {"path": "docs/a"}, rules=rules) is ALLOW
    assert verdict(made(), {"path": "src/a"}, rules=rules) is ASK


@pytest.mark.parametrize("others", [[Rule(ALLOW, "thing")], [Rule(ASK, "*")], [Rule(ASK), Rule(ALLOW)]])
def test_any_deny_wins_regardless_of_order(others: list[Rule]) -> None:
    denies = Rule(DENY, "thing", arguments={"path": "docs/*"})
    for rules in ([denies, *others], [*others, denies]):
        assert verdict(made(), {"path": "docs/a"}, Mode.YOLO, rules) is DENY


def test_a_question_does_not_loosen_what_plan_mode_denies() -> None:
    assert verdict(made(), mode=Mode.PLAN, rules=[Rule(ASK)]) is DENY
    assert verdict(made(), mode=Mode.PLAN, rules=[Rule(ASK, modes=frozenset({Mode.PLAN}))]) is ASK
    assert of_line("git $X", NO_PUSH, mode=Mode.PLAN) is DENY


def test_a_deny_of_the_settings_beats_always_and_an_ask_does_not() -> None:
    always = [Rule(ALLOW, "thing")]
    assert verdict(made(), rules=[Rule(DENY, "thing")], session=always) is DENY
    assert verdict(made(), rules=[Rule(ASK, "thing")], session=always) is ALLOW


def test_plan_mode_reads_only_unless_a_rule_names_it() -> None:
    everywhere, here = Rule(ALLOW, "thing"), Rule(ALLOW, "thing", modes=frozenset({Mode.PLAN}))
    assert verdict(made(), mode=Mode.PLAN, rules=[everywhere], session=[everywhere]) is DENY
    assert verdict(made(), mode=Mode.PLAN, rules=[here]) is ALLOW


@pytest.mark.parametrize(
    "path",
    [
        "/w/punchlist.toml",
        "/w/.punchlist/db",
        "/w/.git/hooks/pre-commit",
        "/w/.git",
        "/w/.GIT/config",
        "/w/.claude/settings.json",
        "/w/.mcp.json",
        "/w/sub/.vscode/tasks.json",
        "/w/.idea/x.xml",
        "/w/.husky/pre-push",
    ],
)
@pytest.mark.parametrize(
    ("mode", "expected"), [(Mode.DEFAULT, ASK), (Mode.AUTO_EDIT, ASK), (Mode.YOLO, ALLOW), (Mode.PLAN, DENY)]
)
def test_files_that_define_what_agents_do_are_asked_about_in_every_mode_but_yolo(
    path: str, mode: Mode, expected: Verdict
) -> None:
    tool = made(effect=Effect.EDIT)
    assert verdict(tool, {"path": path}, mode) is expected
    assert verdict(tool, {"path": path}, mode, [Rule(ALLOW)], [Rule(ALLOW, "thing")]) is expected
    assert verdict(tool, {"path": "/w/x.git"}, Mode.AUTO_EDIT) is ALLOW


def test_that_a_servers_tool_only_reads_is_not_believed() -> None:
    assert verdict(made(effect=Effect.READ, server="s")) is ASK
    assert verdict(made(effect=Effect.READ, server="s"), session=[Rule(ALLOW, server="s")]) is ALLOW
    assert verdict(made(effect=Effect.READ, server="t"), session=[Rule(ALLOW, server="s")]) is ASK
    assert verdict(made(effect=Effect.READ), mode=Mode.YOLO, rules=[Rule(DENY, server="s")]) is ALLOW


def test_always_is_for_the_tool_as_it_was() -> None:
    always = [Rule(ALLOW, "thing", fingerprint="1")]
    assert verdict(made(server="s", fingerprint="1"), session=always) is ALLOW
    assert verdict(made(server="s", fingerprint="2"), session=always) is ASK
    assert verdict(made(server="s"), session=always) is ASK


# --- commands -------------------------------------------------------------------------------------------------------

GIT_STATUS = Rule(ALLOW, "shell", commands=(("git", "status"),))
NO_PUSH = Rule(DENY, "shell", commands=(("git", "push"),))


@pytest.mark.parametrize(
    "line", ["git status", "git status --short", "git status && git status -s", "git status | git status"]
)
def test_a_line_is_allowed_when_each_of_its_commands_is(line: str) -> None:
    assert of_line(line, GIT_STATUS) is ALLOW


@pytest.mark.parametrize(
    "line",
    [
        "git push",
        "git",
        "git statusx",
        "git status; rm x",
        "git status && rm x",
        "git status | sh",
        "git status $(rm x)",
        "git status `rm x`",
        "git status > x",
        "PAGER=x git status",
        "/tmp/git status",
        "git -c x=y status",
        "git status & rm x",
        "git status\nrm x",
        "",
    ],
)
def test_a_line_with_anything_else_in_it_is_asked_about(line: str) -> None:
    assert of_line(line, GIT_STATUS) is ASK


@pytest.mark.parametrize(
    "line", ["git push", "git push -f", "/usr/bin/git push", "git -C x push", "ls && git push", "ls $(git push)"]
)
def test_a_denied_command_is_denied_wherever_it_stands(line: str) -> None:
    assert of_line(line, NO_PUSH, mode=Mode.YOLO) is DENY


@pytest.mark.parametrize("line", ["git $X", "$X push", "eval $X", "ls 'unfinished"])
def test_a_line_that_cannot_be_seen_through_is_asked_about_where_a_rule_might_apply(line: str) -> None:
    assert of_line(line, NO_PUSH, mode=Mode.YOLO) is ASK


def test_without_such_a_rule_yolo_runs_it() -> None:
    assert of_line("eval $X", mode=Mode.YOLO) is ALLOW


@given(
    rules=st.lists(st.builds(Rule, st.sampled_from(Verdict), st.sampled_from(["thing", "*", "other"])), max_size=4),
    session=st.lists(st.builds(Rule, st.just(ALLOW), st.sampled_from(["thing", "*"])), max_size=3),
    mode=st.sampled_from(Mode),
    effect=st.sampled_from(Effect),
)
def test_no_session_makes_a_denied_call_run(rules: list[Rule], session: list[Rule], mode: Mode, effect: Effect) -> None:
    alone, after = (
        verdict(made(effect=effect), None, mode, rules),
        verdict(made(effect=effect), None, mode, rules, session),
    )
    if alone is DENY:
        assert after is DENY


def test_why_is_said_in_words() -> None:
    rule = Rule(DENY, "shell", commands=(("git", "push"), ("rm",)), why="ask Ann", source="punchlist.toml")
    decision = Policy(Mode.YOLO, [rule]).decide(shell(), {"line": "rm x"})
    assert decision.why == "deny shell, commands starting with git push / rm (punchlist.toml): ask Ann"
    assert decision.rule is rule


@pytest.mark.spec("S5")
def test_a_question_that_waits_for_ever_has_no_moment_of_expiry() -> None:
    from datetime import UTC, datetime, timedelta

    now, hour = datetime(2026, 1, 1, tzinfo=UTC), timedelta(hours=1)
    assert ApprovalExpiry().deadline(now) is None
    assert ApprovalExpiry(OnExpiry.WAIT, hour).deadline(now) is None
    assert ApprovalExpiry(OnExpiry.DENY).deadline(now) is None
    assert ApprovalExpiry(OnExpiry.DENY, hour).deadline(now) == now + hour
