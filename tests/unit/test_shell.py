"""A command line is parsed into every command that could run, or the parser says why it cannot be."""

from __future__ import annotations

from typing import Final

import pytest

from punchlist.toolcalls.shell import MAX_LINE_LENGTH, UNREADABLE, SimpleCommand, parse


def programs(line: str) -> list[str]:
    return [" ".join(command.words) for command in parse(line).commands]


def within(line: str) -> dict[str, str]:
    return {command.words[0]: command.within for command in parse(line).commands if command.words}


def test_a_plain_command_is_its_words() -> None:
    line = parse("git commit -m 'a b'")
    assert line.commands == (SimpleCommand(("git", "commit", "-m", "a b"), True, (), (), ""),)
    assert line.unclear is None


@pytest.mark.parametrize("line", ["", " ", "\n\n", "# rm x", " \\\n "])
def test_nothing_is_no_command(line: str) -> None:
    assert parse(line).commands == ()
    assert parse(line).unclear is None


FORMS: Final = {
    "a; b": ["a", "b"],
    "a & b": ["a", "b"],
    "a && b || c": ["a", "b", "c"],
    "a\nb": ["a", "b"],
    "a | b |& c": ["a", "b", "c"],
    "(a; b)": ["a", "b"],
    "{ a; b; }": ["a", "b"],
    "if a; then b; elif c; then d; else e; fi": ["a", "b", "c", "d", "e"],
    "for x in 1 2; do a; done": ["", "a"],
    "for x; do a; done": ["", "a"],
    "for ((i=0; i<3; i++)); do a; done": ["a"],
    "select x in y; do a; done": ["", "a"],
    "while a; do b; done": ["a", "b"],
    "until a; do b; done": ["a", "b"],
    "case x in y | z) a ;; (*) b ;& w) c ;;& esac": ["a", "b", "c"],
    "f() { a; }": ["a"],
    "function f { a; }": ["a"],
    "function f() (a)": ["a"],
    "! a": ["a"],
    "time -p a": ["time", "a"],
    "time a | b": ["time", "a", "b"],
    "coproc a b": ["coproc", "a b"],
    "coproc N { a; }": ["coproc", "a"],
    "x $(a)": ["a", "x"],
    "x `a`": ["a", "x"],
    "x `a \\`b\\``": ["b", "a", "x"],
    'x "$(a "$(b)")"': ["b", "a", "x"],
    'x "`a`"': ["a", "x"],
    'x $"$(a)"': ["a", "x"],
    "x <(a) >(b)": ["a", "b", "x"],
    "x=$(a)": ["a", ""],
    "x=$(a) y": ["a", "y"],
    "x=(1 $(a))": ["a", ""],
    "x > $(a)": ["a", "x"],
    "x < <(a)": ["a", "x"],
    "x <<< $(a)": ["a", "x"],
    "x <<E\n$(a)\nE\ny": ["x", "a", "y"],
    "x <<E | y\n`a`\nE\nz": ["x", "y", "a", "z"],
    "x <<'E'\n$(a)\nE\ny": ["x", "y"],
    "x <<\\E\n$(a)\nE\ny": ["x", "y"],
    "x <<-E\n\t$(a)\n\tE\ny": ["x", "a", "y"],
    "x <<A <<B\n$(a)\nA\n$(b)\nB\ny": ["x", "a", "b", "y"],
    "x ${y:-$(a)}": ["a", "x"],
    'x "${y#"$(a)"}"': ["a", "x"],
    "[[ -n $(a) ]] && b": ["a", "b"],
    "[ -n x ] && b": ["[ -n x ]", "b"],
    "a 2>&1 b": ["a b"],
    "a # b\nc": ["a", "c"],
    "a#b": ["a#b"],
    "a \\\n b": ["a b"],
    "a \\; b": ["a ; b"],
    "a '#' \"#\" ';'": ["a # # ;"],
    "x $((1 + 2))": ["x"],
    "i=0; x $((i + 1))": ["", "x"],
    "a }": ["a }"],
    "a\n# b\nc": ["a", "c"],
    "x ${y:-\\}}; a": ["x", "a"],
    "x ${y:-'}'}; a": ["x", "a"],
    "declare -a x=(1 $(a))": ["a", "declare -a"],
    "case x in\n y) a\n ;;\n z) b\nesac": ["a", "b"],
    "if a\nthen b\nfi\nc": ["a", "b", "c"],
    "while a <<E; do b; done\n$(c)\nE\nd": ["a", "b", "c", "d"],
    "{ (a) }": ["a"],
}


@pytest.mark.parametrize("line", FORMS)
def test_every_command_of_a_form_is_found_in_order(line: str) -> None:
    assert programs(line) == FORMS[line]
    assert parse(line).unclear is None


SPELLINGS: Final = ["rm", "r''m", 'r""m', "\\rm", "'rm'", '"rm"', "$'rm'", "$'\\x72m'", "$'\\162\\u6d'", "r\\m", '"r"m']


@pytest.mark.parametrize("rm", SPELLINGS)
def test_quotes_do_not_change_the_name_of_a_program(rm: str) -> None:
    assert programs(f"{rm} x") == ["rm x"]


@pytest.mark.parametrize(
    "word",
    [
        "$x",
        "${x}",
        '"$x"',
        "$(y)",
        "`y`",
        "*.py",
        "?",
        "[ab]",
        "{a,b}",
        "~",
        "~/x",
        "x$y",
        "<(y)",
        "$1",
        "$@",
        "a{},b}",
        "$'\\xz'",
        "$'\\cA'",
        "$'\\x00'",
    ],
)
def test_words_end_before_the_first_that_is_not_known(word: str) -> None:
    command = parse(f"ls -l {word} -a").commands[-1]
    assert command.words == ("ls", "-l")
    assert not command.complete


@pytest.mark.parametrize("word", ["'$x'", "\\$x", "'*'", '"*"', "\\~", "a~", "{}", "'{a,b}'", "$", '"$"', "a=b", "!"])
def test_a_word_that_only_looks_like_an_expansion_is_known(word: str) -> None:
    assert parse(f"ls {word}").commands[0].complete


def test_assignments_are_named() -> None:
    assert parse("LD_PRELOAD=x PATH=. git status").commands[0].assignments == ("LD_PRELOAD", "PATH")
    assert parse("PATH=.; git status").commands[0].assignments == ("PATH",)
    assert parse("export LD_PRELOAD=x").commands[0].assignments == ("LD_PRELOAD",)
    assert parse("env -u A PATH=. git status").commands[1].assignments == ("PATH",)
    assert parse("for PATH in .; do git status; done").commands[0].assignments == ("PATH",)


WRITES: Final = {
    "a > f": ("f",),
    "a >> f": ("f",),
    "a >| f": ("f",),
    "a &> f": ("f",),
    "a &>> f": ("f",),
    "a >& f": ("f",),
    "a <> f": ("f",),
    "a 2> f > 'g h'": ("f", "g h"),
    "a {fd}> f": ("f",),
    "> f": ("f",),
    "> f a": ("f",),
    "a > $f": ("?",),
    "a > f$x": ("?",),
    "a >& $fd": ("?",),
    "a > >(b)": ("?",),
    "a < f": (),
    "a <<< f": (),
    "a 2>&1": (),
    "a >&2": (),
    "a 2>&-": (),
    "a 3>&1-": (),
    "a > /dev/null 2>&1": (),
    "{ a; } > f": ("f",),
    "while a; do b; done > f": ("f",),
    "(a) 2> f": ("f",),
}


@pytest.mark.parametrize("line", WRITES)
def test_files_that_redirections_write_are_named(line: str) -> None:
    assert parse(line).commands[-1].writes == WRITES[line]


WRAPPED: Final = {
    "sudo rm x": "sudo",
    "/usr/bin/sudo -n -u root -- rm x": "sudo",
    "sudo -EH A=b rm x": "sudo",
    "doas -u root rm x": "doas",
    "env rm x": "env",
    "env -i -u A B=c 'D=e f' rm x": "env",
    'env A="$x" rm x': "env",
    "nice rm x": "nice",
    "nice -n 5 rm x": "nice",
    "nice -5 rm x": "nice",
    "nohup rm x &": "nohup",
    "timeout 5 rm x": "timeout",
    "timeout -s KILL --kill-after=3 5m rm x": "timeout",
    "time rm x": "time",
    "/usr/bin/time -f %e rm x": "time",
    "stdbuf -oL rm x": "stdbuf",
    "setsid -w rm x": "setsid",
    "exec -a ls rm x": "exec",
    "command rm x": "command",
    "command -p rm x": "command",
    "builtin rm x": "builtin",
    "busybox rm x": "busybox",
    "xargs -0 -n 1 -P4 rm x": "xargs",
    "xargs -I% rm x %": "xargs",
    "find . -name '*.py' -exec rm x {} \\;": "find -exec",
    "find . -execdir rm x {} +": "find -execdir",
    "find . -ok rm x ';'": "find -ok",
    "find . -exec ls {} \\; -exec rm x \\;": "find -exec",
    "bash -c 'rm x'": "bash -c",
    "sh -ec 'rm x'": "sh -c",
    "bash -o pipefail -euc 'ls | rm x' name arg": "bash -c",
    "zsh --login -c -- 'rm x'": "zsh -c",
    "bash -c -e 'rm x'": "bash -c",
    "bash <<< 'rm x'": "bash <<",
    "bash -s a b <<'E'\nrm x\nE": "bash <<",
    "sudo sh <<E\nrm x\nE": "sh <<",
    "eval rm x": "eval",
    "bash <<< 'rm x\\'": "bash <<",
    "!\\\n command rm x": "command",
    "eval 'rm' \"x\"": "eval",
    "trap 'rm x' EXIT": "trap",
    "trap -- 'rm x' INT TERM": "trap",
    "watch -n 1 rm x": "watch",
    "watch 'ls; rm x'": "watch",
    "coproc rm x": "coproc",
    "ls $(rm x)": "substitution",
    "f() { rm x; }": "function",
    'sudo env A=b nice xargs timeout 3 sh -c "$(ls)" ; bash -c "sh -c \'eval rm x\'"': "eval",
}


@pytest.mark.parametrize("line", WRAPPED)
def test_what_a_wrapper_runs_is_another_command(line: str) -> None:
    rm = [command for command in parse(line).commands if command.words[:1] == ("rm",)]
    assert [command.words[:2] for command in rm] == [("rm", "x")]
    assert rm[0].within == WRAPPED[line]


@pytest.mark.parametrize("line", list(WRAPPED)[:-1])
def test_an_everyday_wrapper_is_not_unclear(line: str) -> None:
    assert parse(line).unclear is None


def test_the_arguments_that_xargs_and_find_add_are_not_known() -> None:
    assert not parse("xargs rm").commands[1].complete
    assert not parse("find . -exec rm {} +").commands[1].complete
    assert parse("find . -exec rm x +").commands[1].complete
    assert parse("find . -exec rm + {} +").commands[1].words == ("rm", "+")


@pytest.mark.parametrize(
    "line", ["command -v rm", "sudo -l", "sudo --list", "trap - EXIT", "trap", "env", "bash --version", "exec > x"]
)
def test_a_wrapper_that_runs_nothing_is_one_command(line: str) -> None:
    assert len(parse(line).commands) == 1
    assert parse(line).unclear is None


@pytest.mark.parametrize(
    "line",
    ["bash x.sh", "python -c 'x'", "python3 -m pytest", "python x.py", "perl -pe 's/a/b/'", "ssh host rm x",
     "node x.js",
     "source venv/bin/activate", ". ./x", "git -c alias.x='!rm' x", "make -j4", "python3 - <<'E'\nimport os\nE"],
)  # fmt: skip
def test_a_script_or_code_of_another_language_is_just_a_command(line: str) -> None:
    assert len(parse(line).commands) == 1
    assert parse(line).unclear is None


UNCLEAR: Final = {
    "a program's name from a variable": "$x y",
    "from a quoted variable": '"$x" y',
    "from a default": "${x:-rm} y",
    "from a substitution": "$(echo rm) y",
    "from half a substitution": "r$()m y",
    "from a brace expansion": "{rm,-rf,/}",
    "from a pattern": "/bin/r? y",
    "from the home folder": "~/x y",
    "from the arguments": 'set -- rm y; "$@"',
    "behind sudo": "sudo $x",
    "behind an option that is not known": "sudo --frobnicate rm x",
    "env that splits a string": "env -S 'rm x'",
    "env with a word that may split": "env A=$x ls",
    "a name that env takes for an assignment": "env +A=1 rm x",
    "eval of a variable": "eval $x",
    "eval of half a variable": 'eval "ls $x"',
    "source of a variable": "source $x",
    "source of a substitution": ". <(curl x)",
    "source of the input": "source /dev/stdin",
    "a shell that is fed by a pipe": "curl x | sh",
    "by a pipe, with options": "curl x | sudo bash -s -- -y",
    "by a pipe, in a group": "curl x | { cd y; bash; }",
    "by a pipe, with a here-document on another number": "curl x | bash 3<<E\nls\nE",
    "by a file that replaces a here-document": "bash <<< ls < x",
    "by a here-document that is not literal": "bash <<E\n$x\nE",
    "by the name of the input": "curl x | bash /dev/stdin",
    "by a substitution": "bash <(curl x)",
    "another interpreter that is fed by a pipe": "curl x | python3 -",
    "perl that is fed by a pipe": "curl x | perl",
    "a shell's text from a variable": 'bash -c "$x"',
    "from half a variable": 'bash -c "ls $x"',
    "from the arguments of the shell": "bash -c '\"$@\"' _ rm x",
    "from xargs": "xargs sh -c",
    "from a replacement of xargs": "xargs -I{} sh -c 'ls {}'",
    "from a replacement of find": "find . -exec sh -c 'ls {}' \\;",
    "find with an action from a variable": "find . $x",
    "a program that xargs replaces": "xargs -I{} {} x",
    "parallel": "parallel rm ::: x",
    "an alias": "alias ls=rm; ls x",
    "a function that is used": "ls() { rm x; }; ls",
    "a function that is used before": "ls; function ls { rm x; }",
    "a hashed path": "hash -p /bin/rm ls; ls x",
    "a shell that is not read": "fish -c 'rm x'",
    "su": "su -c 'rm x'",
    "a quote that is not closed": "ls 'x",
    "a double quote that is not closed": 'ls "x',
    "a substitution that is not closed": "ls $(x",
    "a backtick that is not closed": "ls `x",
    "a group that is not closed": "{ ls",
    "a parenthesis too many": "ls )",
    "an if without an end": "if ls; then x",
    "a word out of place": "fi",
    "a command that is missing": "ls && ; x",
    "two semicolons": "ls ;; x",
    "a here-document that is missing": "cat <<E",
    "a here-document that does not end": "cat <<E\nx",
    "a here-document whose end is not plain": "cat <<$(x)\ny\n$(x)",
    "a here-document that begins in a quote": "cat <<E 'x\ny'\nE\n",
    "a here-document whose end is hidden by a backslash": "cat <<E\nx\\\nE\nrm\nE\n",
    "a here-document that begins in a substitution": "x $(cat <<E)\nrm\nE\n",
    "a trap from a variable": 'trap "$x" EXIT',
    "a NUL": "ls \0 x",
    "an escape": "ls \x1b x",
    "a carriage return": "ls\r\nrm x",
    "a blank that is none": "ls\u00a0x",
    "a wide blank": "rm\u3000x",
    "a line that ends in a word": "r\\\nm x",
    "a line that ends in an operator": "ls &\\\n& x",
    "a line that ends in a substitution": "ls $\\\n(rm x)",
    "arithmetic of a value that is text": "x='a[$(rm y)]'; ls $((x))",
    "arithmetic of a value from outside": "ls $((x + 1))",
    "arithmetic of what a command says": "ls $(( $(cat x) ))",
    "arithmetic of what is read": "x=1; read x; ls $((x))",
    "arithmetic of what is declared": "x=1; export x='a[$(rm y)]'; ls $((x))",
    "arithmetic of a loop's variable": "x=1; for x in 1 'a[$(rm y)]'; do ls $((x)); done",
    "arithmetic of a default": "x=1; ls ${x:='a[$(rm y)]'} $((x))",
    "arithmetic with a subscript": "ls $((a[1]))",
    "a slice that computes": "ls ${x:$(rm y)}",
    "an expansion that ends in quotes": 'ls "${x:-\'}"; rm x #\'}"',
    "words behind a group": "(ls) rm x",
    "an expansion that is not closed": "ls ${x:-y",
    "a loop without a name": "for 1 in x; do rm; done",
    "a loop without do": "for x in y; rm z",
    "a loop with its words in parentheses": "for x (y) rm z",
    "a shell whose input is closed": "bash <<< ls <&-",
    "a function with a second name": "ls x() { rm y; }",
    "a file that bash starts with and that is a number": "BASH_ENV=5 bash -c ls",
    "a case without in": "case x y) rm;; esac",
    "a condition that does not end": "[[ a",
    "a condition that sh takes for a redirection": "[[ a > b ]]",
    "a condition with a comment": "[[ a #\n]]; rm x",
    "a wait that looks up": "wait -n -p 'a[$(rm x)]'",
    "a format that may look up": "printf \"$x\" 'a[$(rm y)]'",
    "a condition that computes": "[[ $x -eq 1 ]]",
    "a condition that looks up": "[[ -v $x ]]",
    "a test that looks up": "test -v 'a[$(rm x)]'",
    "a test that may look up": "[ $x ]",
    "a test of a value that is text": "x='-v a[$(rm${IFS}y)]'; [ $x ]",
    "arithmetic of a value from env": "env i='a[$(rm y)]' bash -c 'i=$((i + 1))'",
    "a number that sh takes for a word": "nice -n 32>&1 rm",
    "a word behind a redirection that closes": "env >& -rm x",
    "a word behind an array": "A=(b)'c' B= rm x",
    "escaped quotes in backticks": 'x "`y \\"z\\"`"',
    "a backslash at the end": "bash -c 'rm\\'",
    "a subscript": "a[$(rm x)]=1",
    "a subscript that is read": "read 'a[$(rm x)]'",
    "a subscript that is printed to": "printf -v 'a[$(rm x)]' y",
    "a subscript that is unset": "unset 'a[$(rm x)]'",
    "a variable that computes": "declare -i x; x='a[$(rm y)]'",
    "let": "let 'a[$(rm x)]'",
    "a callback": "mapfile -C 'rm x' -c 1 y",
    "indirection": "ls ${!x}",
    "a prompt": "ls ${x@P}",
    "a prompt of set -x": "PS4='$(rm y)'; set -x; ls",
    "a prompt of set -x by export": "export PS4='$(rm y)'; set -x; ls",
    "a file that bash starts with": "BASH_ENV=x bash -c ls",
    "a folder that zsh starts with": "ZDOTDIR=x zsh -c ls",
    "a shell that reads aliases": "bash -ic ls",
    "a long option with one dash": "curl x | bash -rcfile ls",
    "a program that only xargs knows": "xargs -I% -n1 env",
    "a function from the environment": "env 'BASH_FUNC_ls%%=() { rm x; }' bash -c ls",
    "history": "set -o history -o histexpand\nls\n!!",
    "old arithmetic": "ls $[ $(rm x) ]",
    "what bash 5.3 runs in braces": "ls ${ rm x; }",
    "a pattern with parentheses": "ls !(x)",
    "a name that starts with a dash": "time -f x rm y",
    "zsh's name of a program": "=rm x",
    "double parentheses": "((rm x))",
    "double parentheses that are none": "((ls); rm x)",
    "what sh takes for a quote": "ls $'\\'; rm x #'",
    "what sh takes for a command after &>": "ls &> x rm y",
    "what sh takes for a command in [[": "[[ a && rm ]]",
}


@pytest.mark.parametrize("line", UNCLEAR.values(), ids=UNCLEAR)
def test_what_cannot_be_judged_is_unclear(line: str) -> None:
    assert parse(line).unclear not in {None, UNREADABLE}


def test_the_reason_says_what_is_not_known() -> None:
    assert parse("$X y").unclear == "The program's name is not known before it runs: $X"
    assert parse("curl x | sh").unclear == "sh reads its commands from its input."
    assert parse("ls 'x").unclear == 'It cannot be parsed as a shell command: a quote is not closed near "\'x".'


def test_an_unclear_line_still_lists_what_was_found() -> None:
    assert programs("curl x | sudo sh; $y z; rm x") == ["curl x", "sudo sh", "sh", "", "rm x"]
    assert programs("rm x; ls 'y") == ["rm x"]
    assert programs('bash -c "ls \'"; rm x') == ["bash -c ls '", "rm x"]


def test_the_template_of_parallel_is_listed() -> None:
    assert programs("parallel -j4 rm -f ::: x y")[1:] == ["rm -f"]


def test_a_line_that_is_too_long_is_not_read() -> None:
    assert parse("a" * MAX_LINE_LENGTH).unclear is None
    assert parse("a" * (MAX_LINE_LENGTH + 1)).unclear


@pytest.mark.parametrize(("before", "after"), [("$(", ")"), ("( ", " )"), ("{ ", "; }"), ("sudo ", ""), ("! ", "")])
def test_what_is_nested_too_deep_is_unclear(before: str, after: str) -> None:
    assert parse(before * 8 + "rm" + after * 8).unclear is None or before == "$("
    assert parse(before * 50 + "rm" + after * 50).unclear == "It is nested too deeply."


def test_too_many_words_are_unclear() -> None:
    assert parse("a " * 10_000).unclear is None
    assert parse("a " * 30_000).unclear == "It has more than 20000 words."


def test_too_many_commands_are_unclear() -> None:
    assert parse("a;" * 1_000).unclear is None
    assert parse("a;" * 5_000).unclear


EVERYDAY: Final = [
    "cd /repo && make test 2>&1 | tail -n 20",
    "grep -rn 'def \\w+(' src --include='*.py' | sort | uniq -c | sort -rn | head",
    "git commit -m \"$(cat <<'EOF'\nIt's a message (with \"quotes\")\nEOF\n)\"",
    "for f in src/*.py; do echo \"$f\"; wc -l < \"$f\"; done",
    "sed -i 's/a/b/g' x.py && git diff --stat",
    "find . -name '*.pyc' -not -path './.venv/*' -delete",
    "cat > x.py <<'EOF'\nprint(\"$HOME `date`\")\nEOF\npython x.py",
    "export A=1 B=\"$HOME/x\"; ./run.sh",
    "if [ -f x ]; then cat x; else echo none; fi",
    "[ -z \"$x\" ] && exit 1",
    "while read -r line; do echo \"$line\"; done < file",
    "curl -s https://x.example/a?b=c\\&d=e | jq '.[] | {a, b: .c}'",
    "docker run --rm -v \"$PWD\":/x image:1.0 sh -c 'ls /x && id'",
    "n=$(git rev-list --count HEAD); echo \"$n commits\"",
    "set -euo pipefail; ls",
    "awk '{ print $1 }' x | xargs -r kill -9",
    "test $? -eq 0 && echo ok",
    "i=0; while [ $i -lt 3 ]; do i=$((i + 1)); [[ $i -gt 1 ]] && break; done",
    "ls -la \\\n  --color=never \\\n  src",
    "printf '%s\\n' \"$x\" >> log",
    "printf \"$x\"; wait \"$pid\"; unset x; read -r -p 'Name: ' y",
    "echo \"${x:-none}\" ${y%.py} ${#z} ${a[0]} ${a[@]} ${b/c/d} ${e:1:2}",
    "echo" + " ${x:-y} $((1 + 2)) $(true)" * 40,
    "{ (ls); f() { ls; }; };" * 40,
]  # fmt: skip


@pytest.mark.parametrize("line", EVERYDAY)
def test_an_everyday_line_is_not_unclear(line: str) -> None:
    assert parse(line).unclear is None
