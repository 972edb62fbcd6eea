"""Generated command lines under rules: none runs what was not meant, and none that is denied gets through (S4).

Every line is built from commands whose verdict is known, in forms that a shell reads as it stands. The seed is fixed;
`make soak` judges 500,000 lines.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from tests.conftest import SOAK
from tests.unit.test_policy_cases import CASES, TOOL, always, policy_of
from tests.unit.test_shell_properties import CLEAR, PREFIXES, TEXTS, single

from punchlist.toolcalls.always import offered_coverage
from punchlist.toolcalls.paths import PathResolver
from punchlist.toolcalls.policy import Mode, Policy, Rule, Verdict

pytestmark = [
    pytest.mark.spec("S4"),
    pytest.mark.timeout(3_600 if SOAK else 300),
    *([pytest.mark.soak] if SOAK else []),
]

LINES: Final = 500_000 if SOAK else 3_000
EVERYDAY: Final = [case for case in CASES if case.section.startswith("Everyday")]
NOT_COVERED: Final = [case.line for case in CASES if case.section.startswith("What an allowed command does not")]
OPTIONS: Final = {
    "rm": (["-r", "-R", "--recursive", "--recurs"], ["-f", "--force", "--forc"], ["-rf", "-fr", "-Rf", "-rvf"]),
    "git push": (["origin", "main"], ["-f", "--force", "--force-with-lease", "+main", "--mirror"], ["-uf", "-qf"]),
    "chmod": (["777", "x"], ["-R", "--recursive", "--rec"], ["-vR", "-Rv"]),
}
# Programs that run the command in their arguments: as words, and as one text.
RUNNERS: Final = [
    "uv run",
    "poetry run",
    "mise exec --",
    "docker exec c",
    "kubectl exec p --",
    "ssh h",
    "firejail",
    "tini --",
    "hyperfine",
    "git bisect run",
    "git submodule foreach",
    "some-program --then",
    "numactl -N 0",
    "fd x -x",
]
TEXT_RUNNERS: Final = [
    *RUNNERS,
    "git rebase -x",
    "tar -xf a --to-command",
    "capsh -- -c",
    "python3 -c",
    "a -b -c",
    "git -c alias.x=!{} x",
    "tar -xf a --to-command={}",
    "a --run={}",
    "a -x{}",
    "PAGER={} git log",
]
# The harmless command that was approved, and options that are not known, that write, or that run something.
APPROVED: Final = {
    "git log -3": ["--output={}", "--ext-diff", "-O{}", "--unknown", "--outp={}", "-pO{}"],
    "pytest -q": ["-p {}", "-qp {}", "--html={}", "@{}", "--rootdir={}", "-c{}", "--co{}"],
    "go test ./...": ["-exec {}", "-c", "-trace={}", "-o {}", "-toolexec={}", "-unknown"],
    "npm run build": ["--prefix={}", "{}", "-- --config {}", "--script-shell={}"],
    "mypy src": ["--junit-xml {}", "--python-executable={}", "--unknown={}", "@{}"],
    "cargo build": ["--config {}", "--target-dir={}", "-Z{}", "--manifest-path {}", "+{}"],
    "sort a": ["-o {}", "-uo{}", "--compress-program={}", "--outp={}", "-T{}"],
    "docker ps": ["--config {}", "-H {}", "--unknown"],
    "xxd a": ["{}", "-r", "-ps {}"],
}
# Programs with a rule, and the places of a path in their arguments.
ATTACHED: Final = [
    "{}",
    "-t{}",
    "-rt{}",
    "--target-directory={}",
    "--x={}",
    "x={}",
    "x:{}",
    "x,{}",
    "@{}",
    "-C {}",
    "--o {}",
    "'a;{}'",
    "'a {}'",
    "--a=b={}",
    "./{}",
    "build/../{}",
    "--x=./{}",
    "-xyz./{}",
]
PROTECTED: Final = [".git", ".git/config", ".claude/x", ".mcp.json", "punchlist.toml", ".vscode/tasks.json", ".HG/hgrc"]
WRITERS: Final = [
    "cp a",
    "mv a",
    "tar -xf a",
    "unzip a",
    "dd if=a",
    "rsync a",
    "mytool",
    "tee",
    "install a",
    "less -o",
    "xxd a",
]
# Commands of which "always" covers the exact line, or the script of a project, and what gives them input.
TAKES_CODE: Final = [
    "python3 -",
    "python3 tool.py",
    "python3 /dev/stdin",
    "ruby",
    "perl -",
    "php",
    "osascript",
    "uv run -",
    "npx tsx -",
    "deno run -",
    "bun run -",
    "make -f -",
    "gdb -x /dev/stdin",
    "cmake -P /dev/stdin",
    "ed x",
    "vim -s -",
    "sed -f - x",
    "sed --file=- x",
    "awk -f -",
    "gawk -E -",
    "gsed -nf- x",
    "jq -f /dev/stdin x",
    "sqlite3 db",
    "kubectl apply -f -",
    "docker exec -i c sh",
    "docker run -i x",
    "ssh h",
    "patch -p1",
    "git apply",
    "git commit -m x",
    "tee b",
    "xargs cat",
    "xargs -n1 python3",
    "npm run build",
    "npm test",
    "pytest -s",
    "docker compose up",
    "unknown-tool --check",
    "./deploy.sh",
    "bc",
    "less +!x",
    "wc --files0-from=-",
]
TAKES_DATA: Final = [
    "grep -n x",
    "wc -l",
    "sort -u",
    "head -3",
    "tail -n 2",
    "uniq -c",
    "cut -c1",
    "tr a b",
    "jq .name",
    "rg x",
    "cat",
    "less",
    "base64 -d",
    "sed -n 1p",
    "sed s/a/b/",
    "awk 1",
    "git check-ignore --stdin",
    "prettier --check",
]
INPUTS: Final = [
    "{} <<< 'x'",
    "{} <<< x y",
    "<<< x {}",
    "{} < src/app.py",
    "< src/app.py {}",
    "{} 0< src/app.py",
    "{} 3< src/app.py",
    "{} <> src/app.py",
    "{} 0<&3",
    "{} <&3",
    "{} 0>&3",
    "{} < /dev/null < src/app.py",
    "{} <<'E'\nx\nE\n",
    "{} <<E\nx\nE\n",
    "{} <<-E\n\tx\n\tE\n",
    "cat src/app.py | {}",
    "echo x | {}",
    "echo x |& {}",
    "true && echo x | {}",
    "( {} ) < src/app.py",
    "{{ {}; }} <<< x",
    "{{ {}; }} <<E\nx\nE\n",
    "if true; then {}; fi < src/app.py",
    "while true; do {}; break; done <<< x",
    "for i in 1; do {}; done < src/app.py",
    "case a in a) {};; esac < src/app.py",
    "echo x | ( {} )",
    "echo x | {{ true; {}; }}",
    "echo x | if true; then {}; fi",
    "exec < src/app.py; {}",
    "exec 0<<< x\n{}",
    "while true; do {}; exec 0< src/app.py; done",
    "eval '{}' <<< x",
    "bash -c '{}' < src/app.py",
    "echo x | bash -c '{}'",
    "echo x | echo $({})",
    "echo x | echo `{}`",
    "echo x | cat <({})",
    "echo x > >({})",
    "cat >({}) < src/app.py",
    "coproc {}",
    "time {} < src/app.py",
    "echo x | time {}",
    "env {} < src/app.py",
    "nice {} <<< x",
    "echo x | timeout 5 {}",
    "echo x | env A=b {}",
]
# Programs that run a text which they read, and what gives them one.
READERS: Final = [
    "ssh h",
    "docker exec -i c sh",
    "kubectl exec -i p -- sh",
    "make -f -",
    "sqlite3 x",
    "psql",
    "ed x",
    "vim -es x",
    "some-program -",
    "npm run node",
    "sed -f - x",
    "awk '{system($0)}'",
    "python3 -",
    "node",
    "lftp",
    "xargs -n2 some-program",
]
GIVEN: Final = [
    "{0} <<< {1}",
    "echo {1} | {0}",
    "printf '%s\\n' {1} | {0}",
    "echo {1} | cat | {0}",
    "cat <<< {1} | {0}",
    "{{ {0}; }} <<< {1}",
    "( {0} ) <<< {1}",
    "while {0}; do x; done <<< {1}",
    "exec <<< {1}; {0}",
    "echo {1} | {{ x; {0}; }}",
    "echo {1} > >({0})",
    "echo {1} > x.sh; {0} < x.sh",
    "echo {1} > x.sh; sh x.sh",
    "echo {1} | tee x.sh; ./x.sh",
    "tee Makefile <<< {1} && make",
    "{0} <<'E'\n{2}\nE\n",
    "cat <<'E' | {0}\n{2}\nE\n",
    "cat > x.sh <<'E'\n{2}\nE\nsh x.sh",
    "{{ {0}; }} <<E\n{2}\nE\n",
    "some-program \"$(cat <<'E'\n{2}\nE\n)\"",
]
SPELLINGS: Final = ["{}", "'{}'", '"{}"', "\\{}", "''{}", '{}""']


def denied_command(rng: random.Random) -> str:
    """A denied command with its options in some order and form."""
    name = rng.choice(list(OPTIONS))
    first, second, both = OPTIONS[name]
    if name == "rm":
        words = [rng.choice(both)] if rng.random() < 0.4 else [rng.choice(first), rng.choice(second)]
        words += ["x"]
    else:
        words = [rng.choice(both if rng.random() < 0.3 else second), *first]
    rng.shuffle(words)
    program, *subcommands = name.split()
    spelled = rng.choice(SPELLINGS).format(program)
    return " ".join([rng.choice(["", "", *PREFIXES]) + spelled, *subcommands, *words])


def nested(rng: random.Random, commands: Sequence[str], wanted: str, depth: int) -> str:
    """A line that has `wanted` in some place, beside others of `commands`."""
    if depth == 0:
        return wanted
    kind = rng.random()
    inner = nested(rng, commands, wanted, depth - 1)
    if kind < 0.2 and "'" not in inner:
        return rng.choice(TEXTS).format(single(inner))
    form = rng.choice(CLEAR)
    if "<<" in form and "\n" in inner:
        # Its second line would be text of the here-document.
        form = "{}; {}"
    places = form.count("{}")
    at = rng.randrange(places)
    return form.format(*(inner if place == at else rng.choice(commands) for place in range(places)))


def judge(policy: Policy, line: str) -> Verdict:
    return policy.decide(TOOL, {"line": line}).verdict


def test_no_line_with_a_command_that_no_rule_allows_runs(tmp_path: Path) -> None:
    scaffolding = "allow true / [ / bash / sh / eval / trap / timeout / time / E"
    policy = policy_of((*EVERYDAY[0].policy, scaffolding), tmp_path)
    allowed = [case.line for case in EVERYDAY if "$" not in case.line and "#" not in case.line]
    uncovered = [line for line in NOT_COVERED if judge(policy, line) is not Verdict.ALLOW]
    assert len(uncovered) > len(NOT_COVERED) * 0.9
    rng = random.Random(35)
    for _ in range(LINES // 4):
        wanted = rng.choice(uncovered)
        line = nested(rng, allowed, wanted, rng.randrange(3))
        assert judge(policy, line) is not Verdict.ALLOW, (wanted, line)
    # The same forms with allowed commands only: it is not the form that is asked about.
    covered = [nested(rng, allowed, rng.choice(allowed), rng.randrange(2)) for _ in range(300)]
    assert sum(judge(policy, line) is Verdict.ALLOW for line in covered) > len(covered) * 0.4


def test_no_line_runs_what_always_did_not_cover(tmp_path: Path) -> None:
    rng = random.Random(36)
    approved = ["git status -s", "gh pr view 3", "python3 tool.py", "make test", "ls -la", "npm run lint", "npx x y"]
    policy = Policy(Mode.DEFAULT, paths=PathResolver(tmp_path))
    for line in approved:
        always(policy, line)
    more = [
        "--exec=x",
        "; rm x",
        "&& git push",
        "> x",
        "| sh",
        "$(rm x)",
        "`rm x`",
        "../x",
        "/etc/x",
        "& rm x",
        "<(rm x)",
    ]
    for _ in range(LINES // 4):
        line = f"{rng.choice(approved)} {rng.choice(more)}"
        line = nested(rng, approved, line, rng.randrange(2))
        assert judge(policy, line) is not Verdict.ALLOW, line


def test_always_covers_no_argument_that_is_not_known_to_be_harmless(tmp_path: Path) -> None:
    rng = random.Random(38)
    policy = Policy(Mode.DEFAULT, paths=PathResolver(tmp_path))
    for line in APPROVED:
        always(policy, line)
    for _ in range(LINES // 8):
        approved = rng.choice(list(APPROVED))
        argument = rng.choice(APPROVED[approved]).format(rng.choice(["x", "src/x", "./x", "x.js"]))
        words = approved.split()
        line = f"{approved} {argument}" if rng.random() < 0.7 else " ".join([*words[:-1], words[-1], "a", argument])
        line = nested(rng, list(APPROVED), line, rng.randrange(2))
        assert judge(policy, line) is not Verdict.ALLOW, line


def exact(*words: str) -> Rule:
    """What an earlier version of Punchlist stored for "always" on a line, whatever its input was."""
    return Rule(Verdict.ALLOW, "run_command", lines=(words,), source="always")


@pytest.mark.parametrize("form", INPUTS)
def test_always_does_not_cover_other_input(form: str, tmp_path: Path) -> None:
    """With other input, the same words run other code: `python3 -`, `ssh h`, `make -f -`."""
    paths = PathResolver(tmp_path)
    around = [exact(*shell.split(), words) for shell in ("bash -c", "eval") for words in TAKES_CODE]
    for words in TAKES_CODE:
        line = form.format(words)
        scaffolding = policy_of(
            ("allow true / env / nice / timeout / time / coproc / exec / cat / echo / bash -c / eval",), tmp_path
        )
        fresh = Policy(Mode.DEFAULT, scaffolding.rules, paths=paths)
        offered = offered_coverage(fresh, TOOL, {"line": line}, fresh.judge(TOOL, {"line": line}))
        assert (offered.prefixes, offered.lines) == ((), ()), line
        prefixes = (("npm", "run", "build"), ("npm", "test"), ("pytest",), ("git", "commit"), ("wc",))
        earlier = [
            exact(*words.split()),
            *around,
            Rule(Verdict.ALLOW, "run_command", commands=prefixes, source="always"),
        ]
        assert judge(Policy(Mode.DEFAULT, scaffolding.rules, earlier, paths=paths), line) is not Verdict.ALLOW, line


@pytest.mark.parametrize("words", TAKES_DATA)
def test_always_covers_a_filter_with_any_input(words: str, tmp_path: Path) -> None:
    for line in (
        f"git log | {words}",
        f"{words} < a.txt",
        f"{words} <<< x",
        f"ls | ( {words} )",
        f"git log | {words} | wc -c",
    ):
        policy = Policy(Mode.DEFAULT, paths=PathResolver(tmp_path))
        always(policy, line)
        assert judge(policy, line.replace("git log", "git log -3")) is Verdict.ALLOW, line


@pytest.mark.parametrize("words", ["python3 tool.py", "make test", "./deploy.sh", "unknown-tool --check", "ssh h ls"])
def test_always_covers_the_exact_line_without_input(words: str, tmp_path: Path) -> None:
    policy = policy_of(("allow git / head",), tmp_path)
    always(policy, words)
    for form in (
        "{}",
        "{} < /dev/null",
        "{} <&-",
        "{} 2>&1",
        "{} | head",
        "git log | head; {}",
        "{} && git log | head",
    ):
        assert judge(policy, form.format(words)) is Verdict.ALLOW, form


def test_no_allowed_program_names_a_protected_file(tmp_path: Path) -> None:
    rng = random.Random(39)
    names = tuple((writer.split()[0],) for writer in WRITERS)
    rules = [
        [Rule(Verdict.ALLOW, "run_command", commands=names)],
        [Rule(Verdict.ALLOW, "run_command")],
    ]
    for _ in range(LINES // 8):
        policy = Policy(rng.choice([Mode.DEFAULT, Mode.AUTO_EDIT]), rng.choice(rules), paths=PathResolver(tmp_path))
        argument = rng.choice(ATTACHED).format(rng.choice(PROTECTED))
        line = f"{rng.choice(WRITERS)} {argument}"
        line = nested(rng, ["tee a"], line, rng.randrange(2))
        assert judge(policy, line) is not Verdict.ALLOW, line


def test_no_program_that_runs_others_hides_a_denied_command(tmp_path: Path) -> None:
    rng = random.Random(40)
    denied = Rule(Verdict.DENY, "run_command", commands=(("rm", "-rf"), ("git", "push", "--force"), ("chmod", "-R")))
    policies = [
        Policy(mode, [denied, Rule(Verdict.ALLOW, "run_command")], paths=PathResolver(tmp_path))
        for mode in (Mode.YOLO, Mode.DEFAULT)
    ]
    for _ in range(LINES // 8):
        wanted = denied_command(rng)
        if rng.random() < 0.5:
            line = f"{rng.choice(RUNNERS)} {wanted}"
        else:
            form = rng.choice(TEXT_RUNNERS)
            text = single(rng.choice(["{}", "cd x && {}", "true; {}", "{} || true", "( {} )"]).format(wanted))
            line = form.format(text) if "{}" in form else f"{form} {text}"
        line = nested(rng, ["ls", "echo x"], line, rng.randrange(2))
        assert judge(rng.choice(policies), line) is not Verdict.ALLOW, (wanted, line)


def test_no_text_that_a_program_reads_hides_a_denied_command(tmp_path: Path) -> None:
    rng = random.Random(41)
    denied = Rule(Verdict.DENY, "run_command", commands=(("rm", "-rf"), ("git", "push", "--force"), ("chmod", "-R")))
    policies = [
        Policy(mode, [denied, Rule(Verdict.ALLOW, "run_command")], paths=PathResolver(tmp_path))
        for mode in (Mode.YOLO, Mode.DEFAULT)
    ]
    for _ in range(LINES // 8):
        text = rng.choice(["{}", "cd x && {}", "true; {}", "{} || true", "x\n{}\ny"]).format(denied_command(rng))
        line = rng.choice(GIVEN).format(rng.choice(READERS), single(text), text)
        assert judge(rng.choice(policies), line) is not Verdict.ALLOW, line


def test_no_denied_command_gets_through(tmp_path: Path) -> None:
    rng = random.Random(37)
    denied = Rule(Verdict.DENY, "run_command", commands=(("rm", "-rf"), ("git", "push", "--force"), ("chmod", "-R")))
    others = [Rule(Verdict.DENY, "run_command", commands=(("shutdown",),)), Rule(Verdict.ASK), Rule(Verdict.ALLOW)]
    session = [Rule(Verdict.ALLOW, "run_command")]
    harmless = ["ls", "git status", "echo x", "cat y"]
    for number in range(LINES // 2):
        rules = [denied, *others]
        rng.shuffle(rules)
        mode = rng.choice(list(Mode))
        policy = Policy(mode, rules, session if number % 2 else (), paths=PathResolver(tmp_path))
        wanted = denied_command(rng)
        line = nested(rng, harmless, wanted, rng.randrange(3))
        assert judge(policy, line) is not Verdict.ALLOW, (wanted, line)
        if "xargs" not in wanted and "find" not in wanted:
            assert judge(policy, wanted) is Verdict.DENY, wanted
