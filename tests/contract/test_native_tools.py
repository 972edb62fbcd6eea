"""Our own tools: what an agent gets from files, folders, searches and commands, also from odd ones."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.faults.tools import Agent, gone, leaving_nothing, requests

from punchlist.toolcalls.model import ErroredToolCall, SuccessfulToolCall, ToolCallRequest, WaitingToolCall
from punchlist.toolcalls.policy import Mode, Policy

GIGABYTE = 2**30


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    root = tmp_path / "work"
    root.mkdir()
    return Agent(root, output=tmp_path / "output")


def put(agent: Agent, **files: bytes) -> None:
    for name, content in files.items():
        (agent.root / name).write_bytes(content)


# --- reading ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content", ["", "one line", "two\nlines\n", "a\r\nb\r\n", "grün ✓ 𝄞\n", "\ufeffmarked\n", "form\x0cfeed\n"]
)
def test_a_file_is_read_exactly(agent: Agent, content: str) -> None:
    put(agent, file=content.encode())
    assert agent.does("read_file", path="file") == content


def test_a_part_of_a_file_is_counted_in_line_feeds_only(agent: Agent) -> None:
    put(agent, file="one\x0cstill one\ntwo\u2028still two\r\nthree".encode())
    assert agent.does("read_file", path="file", first_line=2, lines=1) == "two\u2028still two\r\n"
    assert agent.does("read_file", path="file", first_line=3) == "three"
    assert agent.does("read_file", path="file", first_line=4) == ""
    assert agent.does("read_file", path="file", first_line=-7, lines=0) == ""


def test_a_part_of_a_file_of_any_size_can_be_read(agent: Agent) -> None:
    with (agent.root / "big").open("wb") as file:
        for start in range(0, 800_000, 1_000):
            file.write(b"".join(b"line %d\n" % number for number in range(start, start + 1_000)))
    told = agent.fails("read_file", path="big").message
    assert "first_line" in told
    assert agent.does("read_file", path="big", first_line=700_001, lines=2) == "line 700000\nline 700001\n"
    assert "Read fewer" in agent.fails("read_file", path="big", first_line=2).message


@pytest.mark.parametrize(
    ("content", "why"), [(b"\x7fELF\x00\x01", "is not text"), (b"caf\xe9\n", "not text in UTF-8 (at byte 3)")]
)
def test_what_is_no_text_is_not_read(agent: Agent, content: bytes, why: str) -> None:
    put(agent, file=content)
    assert why in agent.fails("read_file", path="file").message
    assert why in agent.fails("edit_file", path="file", old="a", new="b").message


def test_a_gigabyte_is_refused_at_once(agent: Agent) -> None:
    with (agent.root / "huge").open("wb") as file:
        file.truncate(GIGABYTE)
    begun = time.monotonic()
    assert "1,073,741,824 bytes" in agent.fails("read_file", path="huge").message
    assert "1,073,741,824 bytes" in agent.fails("edit_file", path="huge", old="a", new="b").message
    assert "Read fewer" in agent.fails("read_file", path="huge", lines=1).message
    assert agent.does("search_text", pattern="x", path="huge") == "No line matches."
    assert "huge  1,073,741,824" in agent.does("list_directory")
    assert time.monotonic() - begun < 10


def test_a_text_of_many_characters_is_cut_and_kept_whole(agent: Agent) -> None:
    put(agent, file=b"x" * 100_000)
    result = agent.gets("read_file", path="file")
    assert len(result.text) < 31_000
    assert result.output_file is not None
    assert Path(result.output_file).read_text() == "x" * 100_000


@pytest.fixture(params=["fifo", "device", "folder", "missing", "socket"])
def oddity(agent: Agent, request: pytest.FixtureRequest) -> str:
    """Something that is no file, called odd."""
    odd = agent.root / "odd"
    match request.param:
        case "fifo":
            os.mkfifo(odd)
        case "device":
            try:
                os.mknod(odd, stat.S_IFCHR | 0o666, os.makedev(1, 5))
            except PermissionError:
                pytest.skip("only root makes devices")
        case "folder":
            odd.mkdir()
        case "socket":
            os.mknod(odd, stat.S_IFSOCK | 0o600)
    return str(request.param)


def test_what_is_no_file_is_neither_read_nor_replaced(agent: Agent, oddity: str) -> None:
    before = None if oddity == "missing" else (agent.root / "odd").stat()
    agent.fails("read_file", path="odd")
    agent.fails("edit_file", path="odd", old="a", new="b")
    if before is not None:
        agent.fails("write_file", path="odd", content="x")
        assert (agent.root / "odd").stat() == before
    if oddity != "folder":
        agent.fails("search_text", pattern="x", path="odd")
        agent.fails("list_directory", path="odd")
    assert agent.does("find_files", pattern="odd") == "No file matches."


def test_what_we_have_no_right_to_is_refused_in_words(agent: Agent) -> None:
    put(agent, file=b"secret\n")
    (agent.root / "file").chmod(0)
    (agent.root / "closed").mkdir(mode=0)
    if os.access(agent.root / "file", os.R_OK):
        pytest.skip("root may do everything")
    assert "Permission denied" in agent.fails("read_file", path="file").message
    assert "Permission denied" in agent.fails("write_file", path="closed/x", content="x").message
    assert "Permission denied" in agent.fails("list_directory", path="closed").message
    assert agent.does("search_text", pattern="secret") == "No line matches."


# --- writing ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", ["", "no end", "a\r\nb\r\n", "grün ✓\n", "nul \x00 inside\n"])
def test_what_is_written_is_exactly_what_was_given(agent: Agent, content: str) -> None:
    assert agent.does("write_file", path="new/folder/grün ✓.txt", content=content).startswith("Created new/folder/")
    assert (agent.root / "new/folder/grün ✓.txt").read_bytes() == content.encode()
    assert os.listdir(agent.root / "new/folder") == ["grün ✓.txt"]


def test_half_a_character_is_not_written(agent: Agent) -> None:
    put(agent, file=b"before")
    assert "surrogate" in agent.fails("write_file", path="file", content="x\ud800").message
    assert (agent.root / "file").read_bytes() == b"before"


def test_a_file_keeps_its_rights_and_a_new_one_gets_the_usual_ones(agent: Agent) -> None:
    put(agent, script=b"echo 1\n")
    (agent.root / "script").chmod(0o750)
    agent.does("edit_file", path="script", old="1", new="2")
    agent.does("write_file", path="other", content="x")
    (agent.root / "usual").touch()
    assert stat.S_IMODE((agent.root / "script").stat().st_mode) == 0o750
    assert (agent.root / "other").stat().st_mode == (agent.root / "usual").stat().st_mode


def test_a_link_inside_stays_a_link_and_its_file_is_written(agent: Agent) -> None:
    put(agent, file=b"before")
    (agent.root / "link").symlink_to("file")
    agent.does("write_file", path="link", content="after")
    assert (agent.root / "link").is_symlink()
    assert (agent.root / "file").read_bytes() == b"after"


@contextmanager
def full_disk(largest: int) -> Iterator[None]:
    """No file can grow beyond some bytes: writing fails in the middle."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_the_file_as_it_was(agent: Agent) -> None:
    put(agent, file=b"before\n")
    with full_disk(20_000):
        told = agent.fails("write_file", path="file", content="x" * 100_000).message
        agent.fails("edit_file", path="file", old="before", new="x" * 100_000)
        agent.fails("write_file", path="new", content="x" * 100_000)
    assert "Nothing was changed" in told
    assert os.listdir(agent.root) == ["file"]
    assert (agent.root / "file").read_bytes() == b"before\n"


def test_a_replacement_that_fails_leaves_the_file_as_it_was(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    put(agent, file=b"before\n")
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", fails)
        assert "Input/output error" in agent.fails("write_file", path="file", content="after").message
    assert os.listdir(agent.root) == ["file"]
    assert (agent.root / "file").read_bytes() == b"before\n"


def test_a_reader_never_sees_half_a_file(agent: Agent) -> None:
    versions = ["a" * 500_000, "b" * 500_000]
    put(agent, file=versions[0].encode())
    seen = set()

    async def write_and_read() -> None:
        batch = agent.scheduler().schedule(
            requests("write_file", [{"path": "file", "content": versions[turn % 2] + " " * turn} for turn in range(10)])
        )
        while any(not isinstance(call, SuccessfulToolCall) for call in batch.calls):
            seen.add((agent.root / "file").read_text().rstrip())
            await asyncio.sleep(0)
        await batch

    asyncio.run(write_and_read())
    assert seen <= set(versions)


# --- editing ---------------------------------------------------------------------------------------------------


def test_an_edit_replaces_one_place_or_all(agent: Agent) -> None:
    put(agent, file=b"a b a\n")
    assert "2 times" in agent.fails("edit_file", path="file", old="a", new="c").message
    assert agent.does("edit_file", path="file", old="b", new="x") == "Replaced 1 occurrence in file."
    assert (
        agent.does("edit_file", path="file", old="a", new="aa", replace_all=True) == "Replaced 2 occurrences in file."
    )
    assert (agent.root / "file").read_bytes() == b"aa x aa\n"


def test_an_edit_that_finds_nothing_says_what_is_close_and_changes_nothing(agent: Agent) -> None:
    put(agent, file=b"def run(self):\n    return 1\n")
    told = agent.fails("edit_file", path="file", old="def run(self, x):\n", new="").message
    assert "not in file" in told
    assert "It has these lines:\n1: def run(self):\n2:     return 1\n" in told
    assert "must not be empty" in agent.fails("edit_file", path="file", old="", new="x").message
    assert "nothing would change" in agent.fails("edit_file", path="file", old="1", new="1").message
    assert (agent.root / "file").read_bytes() == b"def run(self):\n    return 1\n"


@pytest.mark.parametrize(
    ("name", "good", "bad", "told"),
    [
        ("a.py", "def f(x):\n    return x\n", "def f(round(x, 2)):\n    return x\n", "line 1: "),
        ("a.json", '{"a": 1}', '{"a": 1,}', "line 1: "),
        ("a.toml", "a = 1\n", "a = \n", "line 1"),
        ("a.txt", "def", "def (", None),
        ("tsconfig.json", "{}", '{"a": 1, // why\n}', None),
        ("deep.py", "()", "(" * 100_000, "line 1: "),
        # Right in newer Pythons than the one that runs this.
        ("alias.py", "x = 1\n", "type Pair[T] = tuple[T, T]\n", None),
        ("generic.py", "x = 1\n", "def first[T](items: list[T]) -> T: ...\n", None),
        ("quotes.py", "x = 1\n", """x = f"{d["a"]}"\n""", None),
        ("except.py", "x = 1\n", "try:\n    x()\nexcept ValueError, KeyError:\n    pass\n", None),
    ],
)
def test_a_change_that_would_break_a_file_is_refused(
    agent: Agent, name: str, good: str, bad: str, told: str | None
) -> None:
    assert "cannot be parsed" not in agent.does("write_file", path=name, content=good)
    edit: dict[str, Any] = {"path": name, "old": good, "new": bad}
    if told is None:
        agent.does("edit_file", **edit)
        assert (agent.root / name).read_text() == bad
        return
    for refused in (
        agent.fails("edit_file", **edit).message,
        agent.fails("write_file", path=name, content=bad).message,
    ):
        assert f"could not be parsed{' then' if refused.startswith('Not written') else ''}: " in refused
        assert told in refused
        assert "write_file with" in refused
    assert (agent.root / name).read_text() == good
    # A file that is broken already, and a new one, can be written in any way.
    put(agent, **{name: bad.encode()})
    agent.does("write_file", path=name, content=f"{bad} ")
    assert "But it cannot be parsed: " in agent.does("write_file", path=f"new-{name}", content=bad)


def test_a_file_written_anew_says_what_it_has_lost(agent: Agent) -> None:
    agent.does("write_file", path="a.py", content="def add(): ...\n\n\nclass Cart: ...\n\n\nasync def total(): ...\n")
    told = agent.does("write_file", path="a.py", content="async def total(): ...\n")
    assert "But add and Cart are gone. If not meant so, call write_file with the complete text of the file." in told
    agent.does("write_file", path="a.json", content='{"name": 1, "log": {"level": 2}}')
    assert "But log is gone." in agent.does("write_file", path="a.json", content='{"name": 1}')
    agent.does("write_file", path="many.json", content='{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1, "g": 1}')
    assert "But a, b, c, d, e and 2 more are gone." in agent.does("write_file", path="many.json", content="{}")
    agent.does("write_file", path="a.txt", content="def add(): ...")
    assert "gone" not in agent.does("write_file", path="a.txt", content="x")


def test_the_same_content_is_not_written_again(agent: Agent) -> None:
    agent.does("write_file", path="a.txt", content="x")
    before = (agent.root / "a.txt").stat().st_ino
    told = agent.does("write_file", path="a.txt", content="x")
    assert told == "a.txt has this content already: nothing was changed."
    assert (agent.root / "a.txt").stat().st_ino == before


def test_an_edit_that_replaces_only_the_first_line_of_a_function_by_all_of_it_is_refused(agent: Agent) -> None:
    text = "def total(cart):\n    return sum(cart)\n\n\ndef add(cart): ...\n"
    put(agent, **{"cart.py": text.encode()})
    whole = "def total(cart):\n    return round(sum(cart), 2)\n\n\ndef total(cart):"
    told = agent.fails("edit_file", path="cart.py", old="def total(cart):", new=whole).message
    assert "would define total twice, since old is only a part of what new replaces" in told
    assert (agent.root / "cart.py").read_text() == text
    overloads = "@overload\ndef total(cart): ...\n\n\n@overload\ndef total(cart): ...\n"
    agent.does("write_file", path="typed.py", content="@overload\ndef total(cart): ...\n")
    agent.does("edit_file", path="typed.py", old="@overload\ndef total(cart): ...\n", new=overloads)


def test_an_edit_of_a_file_that_is_not_there_says_which_call_to_make(agent: Agent) -> None:
    told = agent.fails("edit_file", path="new.txt", old="a", new="b").message
    assert told == "new.txt does not exist. Call write_file with the text of the new file."


def test_an_absolute_path_with_a_folder_left_out_is_told_the_path_to_use(agent: Agent) -> None:
    (agent.root / "data").mkdir()
    put(agent, **{"data/sales.csv": b"x"})
    told = agent.fails("read_file", path=f"{agent.root.parent}/data/sales.csv").message
    assert told.endswith("Paths are relative to the workspace: use data/sales.csv.")
    told = agent.fails("read_file", path="/no/such/place").message
    assert told.endswith(
        "Use a path inside it, relative to it (`workspace.also` in punchlist.toml allows other folders)."
    )


def test_a_failed_edit_of_a_long_file_shows_the_lines_around_the_most_similar_one(agent: Agent) -> None:
    lines = [f"# {number}" for number in range(100)]
    lines[50] = "def wheel_of_the_car(size):"
    put(agent, file="\n".join(lines).encode())
    told = agent.fails("edit_file", path="file", old="def wheel_of_a_car(size, n):\n    pass", new="").message
    assert "Line 51 is the most similar one:\n46: # 45\n" in told
    assert "56: # 55\nCall edit_file again: old must be whole lines of the file" in told
    assert "Read the file again." in agent.fails("edit_file", path="file", old="§§§§", new="").message


@pytest.mark.parametrize(
    ("old", "new", "after"),
    [
        ("a\nb\n", "x\ny\n", b"x\r\ny\r\nc\r\n"),
        ("a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\nc\r\n"),
        ("a\nb\n", "x\r\ny\r\n", b"x\r\ny\r\nc\r\n"),
        ("b", "x\ny", b"a\r\nx\r\ny\r\nc\r\n"),
    ],
)
def test_a_file_with_crlf_has_only_crlf_after_an_edit(agent: Agent, old: str, new: str, after: bytes) -> None:
    put(agent, file=b"a\r\nb\r\nc\r\n")
    agent.does("edit_file", path="file", old=old, new=new)
    assert (agent.root / "file").read_bytes() == after


def test_a_file_with_lf_has_only_lf_after_an_edit(agent: Agent) -> None:
    put(agent, file=b"a\nb\nc\n")
    agent.does("edit_file", path="file", old="a\r\nb\r\n", new="x\r\ny\r\n")
    assert (agent.root / "file").read_bytes() == b"x\ny\nc\n"


def test_a_file_with_both_line_ends_is_changed_only_where_it_was_asked_for(agent: Agent) -> None:
    put(agent, file=b"a\r\nb\nc\r\n")
    agent.does("edit_file", path="file", old="b\n", new="x\ny\n")
    assert (agent.root / "file").read_bytes() == b"a\r\nx\ny\nc\r\n"


def test_edits_of_one_file_at_once_lose_nothing(agent: Agent) -> None:
    put(agent, file=b"".join(b"<%d>\n" % number for number in range(40)))
    (agent.root / "link").symlink_to("file")

    async def edit_all() -> None:
        edits = [
            {"path": ["file", "./file", "link"][number % 3], "old": f"<{number}>", "new": f"done {number}"}
            for number in range(40)
        ]
        await agent.scheduler().schedule(requests("edit_file", edits))

    asyncio.run(edit_all())
    assert (agent.root / "file").read_text().splitlines() == [f"done {number}" for number in range(40)]


def preview(agent: Agent, tool: str, **arguments: object) -> str:
    async def ask() -> str:
        scheduler = Agent(agent.root, policy=Policy(Mode.DEFAULT)).scheduler()
        [call] = await scheduler.schedule(ToolCallRequest(tool, arguments)).settled()
        assert isinstance(call, WaitingToolCall), call
        await scheduler.close()
        return call.question.text

    return asyncio.run(ask())


def test_the_question_about_an_edit_is_a_unified_diff(agent: Agent) -> None:
    lines = [f"line {number}" for number in range(1, 10_001)]
    put(agent, file="\n".join([*lines, ""]).encode())
    shown = preview(agent, "edit_file", path="file", old="line 5000\n", new="five\nthousand\n")
    assert shown.splitlines() == [
        "--- a/file",
        "+++ b/file",
        "@@ -4997,7 +4997,8 @@",
        " line 4997",
        " line 4998",
        " line 4999",
        "-line 5000",
        "+five",
        "+thousand",
        " line 5001",
        " line 5002",
        " line 5003",
    ]


def test_the_question_about_writing_shows_what_is_new(agent: Agent) -> None:
    put(agent, file=b"a\nb", crlf=b"a\r\nb\r\n")
    assert preview(agent, "write_file", path="new", content="x\n") == "Create new, 1 line:\n\nx\n"
    assert preview(agent, "write_file", path="file", content="a\nc\n").splitlines()[3:] == [
        " a",
        "-b",
        "-\\ No newline at end of file",
        "+c",
    ]
    assert "line ends" in preview(agent, "write_file", path="crlf", content="a\nb\n")
    assert "\x1b" not in preview(agent, "write_file", path="new", content="\x1b[2J")


def test_a_question_about_a_hostile_file_is_ready_in_a_moment(agent: Agent) -> None:
    # Each line is there hundreds of times, and none is where it was: the worst for a diff.
    numbers = [f"{number * 7919 % 113}" for number in range(80_000)]
    put(agent, file="\n".join(numbers).encode(), long=b"ab" * 1_000_000)
    begun = time.monotonic()
    assert "too large to show" in preview(agent, "write_file", path="file", content="\n".join(numbers[::-1]))
    agent.fails("edit_file", path="file", old="12 ", new="x")
    agent.fails("edit_file", path="long", old="ba" * 100_000 + "c", new="x")
    assert time.monotonic() - begun < 5


# --- folders ---------------------------------------------------------------------------------------------------


def test_a_folder_is_listed_with_sizes_and_links(agent: Agent) -> None:
    assert agent.does("list_directory") == "(empty)"
    put(agent, **{"b.txt": b"12345", "Ärger": b"", ".hidden": b""})
    (agent.root / "Sub").mkdir()
    (agent.root / "link").symlink_to("/etc/passwd")
    listed = agent.does("list_directory", path=".").splitlines()
    assert listed == [".hidden  0", "b.txt  5", "link -> /etc/passwd", "Sub/", "Ärger  0"]


def test_a_name_cannot_look_like_another_entry(agent: Agent) -> None:
    put(agent, **{"a\nb": b"", "\x1b[2J": b"", "\u202egnp": b""})
    (agent.root / os.fsdecode(b"bad\xff")).touch()
    listed = agent.does("list_directory")
    assert listed.splitlines() == ["\\u202egnp  0", "\\x1b[2J  0", "a\\x0ab  0", "bad\\udcff  0"]


def test_a_large_folder_is_listed_up_to_a_limit(agent: Agent) -> None:
    for number in range(1_010):
        (agent.root / f"{number:04}").touch()
    listed = agent.does("list_directory").splitlines()
    assert len(listed) == 1_001
    assert listed[-1].startswith("… and 10 more")


# --- finding and searching -------------------------------------------------------------------------------------


@pytest.fixture
def tree(agent: Agent) -> Agent:
    """A small project with all that searches stumble over."""
    files = {
        "a.py": b"import os\nneedle = 1\nlast needle",
        "src/b.py": b"# crlf\r\nneedle\r\n",
        "src/deep/er/test_c.py": b"x\x0cy\nneedle\n",
        "src/-dash.txt": b"needle\n",
        "größe ✓.txt": "größer needle ✓\n".encode(),
        "latin.txt": b"caf\xe9 needle\n",
        "binary": b"\x00needle\n",
        ".hidden": b"needle\n",
        ".cache/x.py": b"needle\n",
        "node_modules/x.py": b"needle\n",
        ".gitignore": b"a.py\n",
        "z/last.py": b"ROOT/needle\n".replace(b"ROOT", bytes(agent.root)),
    }
    for name, content in files.items():
        (agent.root / name).parent.mkdir(parents=True, exist_ok=True)
        (agent.root / name).write_bytes(content)
    os.mkfifo(agent.root / "fifo")
    (agent.root / "link.py").symlink_to("a.py")
    return agent


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", ["a.py", "src/b.py", "src/deep/er/test_c.py", "z/last.py"]),
        ("src/*.py", ["src/b.py"]),
        ("src/**/*.py", ["src/b.py", "src/deep/er/test_c.py"]),
        ("**/test_?.py", ["src/deep/er/test_c.py"]),
        ("**/b.py", ["src/b.py"]),
        ("src/**", ["src/-dash.txt", "src/b.py", "src/deep/er/test_c.py"]),
        ("./a.py", ["a.py"]),
        ("größe*", ["größe ✓.txt"]),
        ("-*", ["src/-dash.txt"]),
        ("[a].py", []),
        ("fifo", []),
        ("**/x.py", []),
    ],
)
def test_files_are_found_by_patterns(tree: Agent, pattern: str, found: list[str]) -> None:
    assert tree.does("find_files", pattern=pattern) == ("\n".join(found) or "No file matches.")


def ripgrep() -> str | None:
    """Where a ripgrep for tests is: `PUNCHLIST_TEST_RG`, or on the path."""
    return os.environ.get("PUNCHLIST_TEST_RG") or shutil.which("rg")


@pytest.fixture(params=["python", "ripgrep"])
def engine(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What searches: Python, or ripgrep, which is the only program on the path then."""
    folder = tmp_path / "bin"
    folder.mkdir()
    if request.param == "ripgrep":
        found = ripgrep()
        if found is None:
            pytest.skip("there is no rg: set PUNCHLIST_TEST_RG to one")
        (folder / "rg").symlink_to(found)
    monkeypatch.setenv("PATH", str(folder))
    return str(request.param)


@pytest.mark.parametrize(
    ("pattern", "path", "found"),
    [
        (
            "needle",
            ".",
            [
                ".hidden:1:needle",
                "a.py:2:needle = 1",
                "a.py:3:last needle",
                "größe ✓.txt:1:größer needle ✓",
                "latin.txt:1:caf\ufffd needle",
                "src/-dash.txt:1:needle",
                "src/b.py:2:needle",
                "src/deep/er/test_c.py:2:needle",
                "z/last.py:1:ROOT/needle",
            ],
        ),
        ("needle$", "src", ["src/-dash.txt:1:needle", "src/b.py:2:needle", "src/deep/er/test_c.py:2:needle"]),
        ("needle", "src/-dash.txt", ["src/-dash.txt:1:needle"]),
        ("needle", "link.py", ["a.py:2:needle = 1", "a.py:3:last needle"]),
        ("^(import|#)", "", ["a.py:1:import os", "src/b.py:1:# crlf"]),
        ("--files", ".", []),
        ("-e", ".", []),
        ("--pre=cat", ".", []),
    ],
)
def test_both_searches_find_the_same(tree: Agent, engine: str, pattern: str, path: str, found: list[str]) -> None:
    told = tree.does("search_text", pattern=pattern, path=path).replace(str(tree.root), "ROOT")
    assert told == ("\n".join(found) or "No line matches.")


def test_both_searches_stop_at_as_many_lines_as_anybody_reads(agent: Agent, engine: str) -> None:
    put(agent, a=b"x\n" * 400, b=b"x\n" * 400)
    told = agent.does("search_text", pattern="x").splitlines()
    assert len(told) == 501
    assert told[-1] == "… more than 500 matches; narrow the search"


@pytest.mark.parametrize("hostile", ["--files", "-f/etc/passwd", "--pre=/bin/sh", "--", "-"])
def test_a_pattern_or_a_path_is_never_an_option(agent: Agent, hostile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = agent.root / "rg"
    fake.write_text(f"#!{sys.executable}\nimport sys\nprint(*sys.argv[1:], sep='\\n')\n")
    fake.chmod(0o755)
    folder = agent.root / hostile.replace("/", "_")
    folder.mkdir()
    monkeypatch.setenv("PATH", str(agent.root))
    told = agent.does("search_text", pattern=hostile, path=folder.name).splitlines()
    assert told[-4:] == ["--regexp", hostile, "--", "."]
    (folder / "file").write_text(hostile)
    monkeypatch.setenv("PATH", str(folder))
    assert agent.does("search_text", pattern="--" if hostile == "--" else "-", path=f"{folder.name}/file")


def test_both_searches_say_what_is_wrong_with_a_pattern(agent: Agent, engine: str) -> None:
    put(agent, a=b"x")
    assert "The command ended with exit code" in agent.fails("search_text", pattern="(").message
    assert "1 to 1000 characters" in agent.fails("search_text", pattern="").message
    assert "1 to 1000 characters" in agent.fails("search_text", pattern="x" * 1_001).message
    assert "1 to 1000 characters" in agent.fails("search_text", pattern="\x00").message


@pytest.mark.parametrize("pattern", ["(", "a{99999999999}", "(" * 900, "(?P<x>a)(?P<x>b)", "*"])
def test_a_pattern_that_is_none_is_refused_in_words(
    agent: Agent, pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "not a regular expression" in agent.fails("search_text", pattern=pattern).message


def test_a_warning_about_a_pattern_is_no_find(agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    put(agent, a=b"[\n")
    assert agent.does("search_text", pattern="[[a]") == "a:1:["


def test_names_that_are_no_text_are_found(agent: Agent, engine: str) -> None:
    (agent.root / os.fsdecode(b"bad\xff.txt")).write_bytes(b"needle\n")
    assert agent.does("find_files", pattern="bad*") == "bad\ufffd.txt"
    assert agent.does("search_text", pattern="needle") == "bad\ufffd.txt:1:needle"


def test_a_search_that_would_never_end_is_ended(agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    put(agent, file=b"a" * 60 + b"b\n")

    async def search() -> float:
        begun = time.monotonic()
        [call] = await agent.scheduler().schedule(
            ToolCallRequest("search_text", {"pattern": "(a+)+$"}, call_id="endless", timeout=0.5)
        )
        took = time.monotonic() - begun
        assert isinstance(call, ErroredToolCall)
        assert call.error.code == "timed_out"
        return took

    assert leaving_nothing(search) < 0.55
    assert gone("searching.py", 0)


# --- commands --------------------------------------------------------------------------------------------------


def test_a_command_runs_in_the_folder_and_says_what_it_prints(agent: Agent) -> None:
    assert agent.runs("pwd; echo to stderr >&2") == f"{agent.root}\nto stderr\n"
    assert agent.runs("true") == ""
    assert agent.runs("cat; read x || echo nothing to read") == "nothing to read\n"
    assert agent.runs(f"{sys.executable} -c 'import sys; print(sys.stdin.read() == str())'") == "True\n"


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("echo out; exit 3", "The command ended with exit code 3.\n\nout"),
        ("no-such-program", "The command ended with exit code 127.\n\n"),
        ("/dev/null", "The command ended with exit code 126.\n\n"),
        ("kill -9 $$", "The command was ended by signal SIGKILL.\n\n(no output)"),
        ("kill -TERM $$", "The command was ended by signal SIGTERM.\n\n(no output)"),
        ("kill -40 $$", "The command was ended by signal 40.\n\n(no output)"),
        ("if then", "The command ended with exit code 2.\n\n"),
        ("-x", "The command ended with exit code 127.\n\n"),
        ("--version", "The command ended with exit code 127.\n\n"),
    ],
)
def test_a_command_that_fails_says_how(agent: Agent, command: str, told: str) -> None:
    assert told in agent.fails("run_command", command=command).message


@pytest.mark.parametrize("command", ["", "  \n", "echo \x00", "echo \ud800"])
def test_what_is_no_command_line_is_refused(agent: Agent, command: str) -> None:
    agent.fails("run_command", command=command)


def test_a_command_line_can_be_too_long(agent: Agent) -> None:
    assert "Cannot start" in agent.fails("run_command", command="echo " + "x" * 200_000).message


@pytest.mark.parametrize("timeout", [0, -1, 3_601])
def test_a_time_limit_must_make_sense(agent: Agent, timeout: float) -> None:
    assert "timeout" in agent.fails("run_command", command="true", timeout=timeout).message
