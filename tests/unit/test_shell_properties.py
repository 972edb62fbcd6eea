"""No command hides: not from lines made of known commands, and not from what real shells do with them.

Every command is a marker, `m0` to `m9`. The made-up lines are also given to bash and to sh, in an empty folder and with
a PATH on which there is little but programs named as the markers, which write down that they ran.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.examples import examples

from punchlist.kernel.text import line_problem
from punchlist.toolcalls.shell import UNREADABLE, CommandLine, parse

MARKERS: Final = [f"m{number}" for number in range(10)]
PROGRAMS: Final = ["bash", "cat", "env", "find", "nice", "nohup", "setsid", "sh", "timeout", "true", "xargs"]
SHELLS: Final = [pytest.param(shell, marks=pytest.mark.skipif(not shutil.which(shell), reason=f"no {shell} here"))
                 for shell in ("bash", "sh")]  # fmt: skip

Draw = Callable[[st.SearchStrategy[str]], str]


def listed(line: CommandLine) -> set[str]:
    """The programs of `line`, and the scripts that it gives to a shell: those are in the words of that command."""
    programs = {command.words[0] for command in line.commands if command.words}
    return programs | {word for command in line.commands if command.words[:1] in SCRIPTED for word in command.words}


SCRIPTED: Final = [("bash",), ("sh",)]


def single(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def in_backticks(text: str) -> str:
    return "true `" + re.sub(r"([`$\\])", r"\\\1", text) + "`"


def here_document(text: str) -> str:
    end = "Q" * (text.count("Q") + 1)
    return f"bash <<'{end}'\n{text}\n{end}\n"


# What a command may be put inside of. Every one of these is read without a doubt.
CLEAR: Final = [
    "{}", "{}; {}", "{}\n{}", "{} && {}", "{} || {}", "{} | {}", "{} & {}", "( {} )", "({})", "{{ {}; }}", "! {}",
    "if {}; then {}; else {}; fi", "while {}; do {}; break; done", "until {}; do {}; break; done",
    "for x in 1 2; do {}; done", "for x in $({}); do {}; done", "case a in (b|a) {};; *) {}; esac",
    "case $({}) in *) {};; esac", "cat $({})", "cat \"a $({}) b\"", "x=$({})", "x=$({}) true", "cat <<< \"$({})\"",
    "cat <<E\n$({})\nE", "cat <<'E'\n$(rm ` \" ( {{\nE\n{}", "cat <<-E | {}\n\t${{x:-$({})}}\n\tE\n{}",
    "true \"${{x:-$({})}}\"", "true ${{x:+y}}; {}", "{} > /dev/null 2>&1", "true # ' \" $(\n{}", "{} \\\n && {}",
    "true '\n' \"#\"; {}", "true \\' ; {}", "true \\\\; {}", "[ -f x ] && {}", "[[ -f x ]] || {}", "a=(1 $({})); {}",
    "cat <<E\n E\nE \n$({})\nE\n{}",
    "true <({})", "{} > >({})", "time {}", "f() {{ {}; }}; {}", "echo $'a\\tb' ; {}", "((i++)); {}", "true }} ; {}",
]  # fmt: skip
# And these take a text of their own.
TEXTS: Final = ["bash -c {}", "sh -ec {}", "eval {}", "trap {} EXIT", "env A=1 bash -c {}", "bash <<< {}",
                "find . -maxdepth 0 -exec sh -c {} \\;", "timeout 5 sh -c {}", "true | xargs -n1 sh -c {}"]  # fmt: skip
PREFIXES: Final = ["env ", "env -i ", "nice -n 3 ", "nohup ", "timeout 5 ", "exec ", "command ", "A=b ", "A='b c' B= ",
                   "> out ", "true | xargs ", "find . -maxdepth 0 -exec "]  # fmt: skip
SPELLINGS: Final = ["{}", "'{}'", '"{}"', "\\{}", "''{}", '{}""', "$'{}'"]


@st.composite
def commands(draw: Draw) -> str:
    marker = draw(st.sampled_from(MARKERS))
    return draw(st.sampled_from(["", "", *PREFIXES])) + draw(st.sampled_from(SPELLINGS)).format(marker)


def nest(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    @st.composite
    def nested(draw: Draw) -> str:
        form = draw(st.sampled_from(CLEAR))
        return form.format(*(draw(inner) for _ in range(form.count("{}"))))

    @st.composite
    def quoted(draw: Draw) -> str:
        return draw(st.sampled_from(TEXTS)).format(single(draw(inner)))

    return nested() | quoted() | inner.map(in_backticks) | inner.map(here_document)


LINES: Final = st.recursive(commands(), nest, max_leaves=5)

# Pieces that fit together rarely, and then in ways nobody thought of.
PIECES: Final = [
    *(f"{marker} " for marker in MARKERS), "'", '"', "`", "$(", "$((", "((", ")", "))", "(", "{ ", "} ", "; ", "\n",
    "#", " ", "\\", "\\\n", "& ", "&& ", "|| ", "| ", "|&", "<<E\n", "<<'E'\n", "<<-E\n", "\nE\n", "<<< ", "<(",
    ">(", "> o ", "&> o ", ">& ", "2>&1 ", "$'", "\\'", '$"', "${x:-", "${x#", "}", "[[ a ", "]] ", "[ a ", "] ",
    "if ", "then ", "else ", "fi;", "case a in ", "in ", "a) ", ";; ", "esac ", "for x in a; do ", "while false; do ",
    "done; ", "eval ", "bash -c ", "-c ", "-s ", "-- ", "- ", "x=", "i=1; ", "a[", "=(", "!", "time ", "f() ",
    "function f ", "coproc ", "~", "*", "{a,", "{} ", "x", "1", "E", "+", "\t", "\r", "exec ", "env ", "nohup ",
    "trap ",
    "EXIT ", "$x", "$x ", '"$x" ', "$[", "true ", "command ", "xargs ", "12>", "{n}>o ", "nice -n ", "timeout ",
    "find . -exec ", "\\\\",
]  # fmt: skip
SCRAPS: Final = st.lists(st.sampled_from(PIECES), min_size=2, max_size=14).map("".join)


@given(LINES)
@examples(400)
def test_every_command_of_a_made_up_line_is_listed_or_the_line_is_unclear(line: str) -> None:
    found = parse(line)
    assert found.unclear or set(re.findall(r"m[0-9]", line)) <= listed(found)


@pytest.mark.parametrize("form", CLEAR)
def test_an_everyday_form_is_read_without_a_doubt(form: str) -> None:
    markers = MARKERS[1 : 1 + form.count("{}")]
    found = parse(form.format(*markers))
    assert found.unclear is None
    assert set(markers) <= listed(found)


@given(st.text(st.sampled_from("'\"`$(){}[]<>|&;\\\n #!=~*x1E-"), max_size=60) | st.text(max_size=60) | SCRAPS)
@examples(600)
def test_whatever_it_is_given_it_answers(line: str) -> None:
    found = parse(line)
    assert found.unclear != UNREADABLE
    assert found.unclear is None or line_problem(found.unclear, max_length=200) is None


class RealShell:
    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.log = folder / "log"
        self.path = folder / "path"
        self.path.mkdir()
        for name in PROGRAMS:
            if program := shutil.which(name):
                (self.path / name).symlink_to(program)
        for marker in MARKERS:
            self.program(marker, f"echo {marker} >> '{self.log}'")
        self.program("args", f"""for word; do printf '<%s>' "$word"; done > '{self.log}'""")

    def program(self, name: str, script: str) -> None:
        (self.path / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.path / name).chmod(0o755)

    def ran(self, shell: str, line: str) -> set[str]:
        """The markers that ran when `shell` was given `line`."""
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir()
        self.log.write_text("")
        ended, held = os.pipe()
        process = subprocess.Popen(
            [shutil.which(shell) or shell, "-c", line],
            cwd=self.home, env={"PATH": str(self.path)}, start_new_session=True, pass_fds=[held],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(held)
        # Readable when nobody holds the other end: the shell and all that it left running in the background are gone.
        if not select.select([ended], [], [], 2)[0]:
            os.killpg(process.pid, signal.SIGKILL)
        os.close(ended)
        process.wait()
        return set(self.log.read_text().split()) & set(MARKERS)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> RealShell:
    if os.name != "posix":
        pytest.skip("no real shell here")
    return RealShell(tmp_path_factory.mktemp("shell"))


def hidden(real: RealShell, shell: str, line: str) -> set[str]:
    found = parse(line)
    return set() if found.unclear or "\0" in line else real.ran(shell, line) - listed(found)


@pytest.mark.parametrize("shell", SHELLS)
def test_no_command_that_a_real_shell_runs_is_missed(real: RealShell, shell: str) -> None:
    @given(LINES)
    @examples(60)
    def check(line: str) -> None:
        assert not hidden(real, shell, line)

    check()


@pytest.mark.parametrize("shell", SHELLS)
def test_no_command_that_a_real_shell_finds_in_scraps_is_missed(real: RealShell, shell: str) -> None:
    @given(SCRAPS)
    @examples(200)
    def check(line: str) -> None:
        assert not hidden(real, shell, line)

    check()


QUOTED: Final = st.lists(
    st.sampled_from([
        "'", '"', "\\", "a", " ", "$'", "\\n", "\\x41", "\\101", "\\u42", "{", "}", "{}", "{a,b}", "~", "*", "[", "]",
        "#", "!", "x=", "$", "\\\n", "-", "`", "\\\\", "\\'", '\\"', "\\$", "é", "{a}",
    ]),
    min_size=1, max_size=9,
).map("".join)  # fmt: skip


@pytest.mark.parametrize("shell", SHELLS[:1])
def test_known_words_are_those_that_the_program_gets(real: RealShell, shell: str) -> None:
    @given(QUOTED)
    @examples(200)
    def check(words: str) -> None:
        found = parse(f"args {words}")
        if found.unclear is None and len(found.commands) == 1 and found.commands[0].complete:
            real.ran(shell, f"args {words}")
            assert real.log.read_text() == "".join(f"<{word}>" for word in found.commands[0].words[1:])

    check()


HOSTILE: Final = {
    "substitutions": "$(" * 50_000,
    "arithmetic": "$((" * 33_000,
    "expansions": "${x:-" * 20_000,
    "quoted expansions": '"${x:-' * 16_000,
    "parentheses": "(" * 100_000,
    "braces": "{ " * 50_000,
    "brace expansions": "{a," * 33_000,
    "quotes": "'\"" * 50_000,
    "backticks": "`" * 100_000,
    "escaped backticks": "`" + "\\`" * 49_000 + "`",
    "brackets": "[" * 100_000,
    "conditions": "[[ " * 33_000,
    "here-documents": "<<a " * 20_000 + "\na" * 9_000,
    "commands": "a;" * 50_000,
    "substitutions side by side": "$(a)" * 25_000,
    "words": "a " * 50_000,
    "negations": "! " * 50_000,
    "ifs": "if " * 33_000,
    "functions": "f()" * 33_000,
    "wrappers": "sudo " * 20_000,
    "evals": "eval " * 20_000,
    "assignments": "a=" * 50_000,
    "redirections": ">a" * 50_000,
    "backslashes": "\\" * 100_000,
    "lines": "\\\n" * 50_000,
    "one word": "a" * 100_000,
    "dollars": "$" * 100_000,
    "expressions": "$((" + "(" * 99_000,
    "find": "find . " + "-exec a ; " * 9_000,
    "parameters": "${#" * 33_000,
    "variables": "$a" * 50_000,
    "arrays": "a=(" * 33_000,
}


@pytest.mark.parametrize("line", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_line_of_100_kilobytes_is_read_quickly(line: str) -> None:
    started = time.process_time()
    assert parse(line).unclear != UNREADABLE
    assert time.process_time() - started < 1
