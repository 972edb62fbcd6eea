"""The walls of the workspace: no path, link or swap leads out of it (trust test 28)."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.faults.tools import Agent, open_files

from punchlist.toolcalls.model import ErroredToolCall, ToolCallRequest
from punchlist.toolcalls.tool import ToolFailure
from punchlist.tools.workspace import Workspace

SECRET = "what nobody may read"


class House(NamedTuple):
    """A workspace with a neighbour."""

    agent: Agent
    inside: Path
    outside: Path


@pytest.fixture
def house(tmp_path: Path) -> House:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        (folder / "sub").mkdir(parents=True)
    (outside / "secret.txt").write_text(SECRET)
    (outside / "sub" / "secret.txt").write_text(SECRET)
    (inside / "sub" / "file.txt").write_text("ours")
    (inside / "file_link").symlink_to(outside / "secret.txt")
    (inside / "folder_link").symlink_to(outside)
    (inside / "chain").symlink_to("folder_link/sub")
    (inside / "sub" / "up").symlink_to("../..")
    (inside / "loop").symlink_to("loop")
    (tmp_path / "inside_too").mkdir()
    (tmp_path / "inside_too" / "secret.txt").write_text(SECRET)
    return House(Agent(inside), inside, outside)


OUT = [
    "../outside/secret.txt",
    "sub/../../outside/secret.txt",
    "./././../outside/secret.txt",
    "../inside_too/secret.txt",
    "..//outside///secret.txt",
    "file_link",
    "folder_link/secret.txt",
    "chain/secret.txt",
    "sub/up/outside/secret.txt",
    "folder_link/../outside/secret.txt",
    "/proc/self/cwd/../etc/passwd",
    "/proc/self/root/etc/passwd",
    "/proc/1/environ",
    "/etc/passwd",
    "//etc/passwd",
    "/dev/stdin",
    "/dev/fd/0",
    "..",
    "/",
]
NOWHERE = [
    "~",
    "~root/.profile",
    "~/../outside/secret.txt",
    "$HOME/x",
    "%2e%2e/outside/secret.txt",
    "..%2foutside/secret.txt",
    "..\\outside\\secret.txt",
    "\u2025/outside/secret.txt",
    "\uff0e\uff0e/outside/secret.txt",
    "..\u2215outside\u2215secret.txt",
    ".\u200b./outside/secret.txt",
    " ../outside/secret.txt",
    "file:///etc/passwd",
    "sub\n../../outside/secret.txt",
    "loop",
    "loop/x",
]
"""Names that look like a way out, and are the names of files that there are not."""
NO_PATHS = [
    "\x00",
    "sub/file.txt\x00.png",
    "../outside/secret.txt\x00",
    "x/" * 5_000,
    "x" * 10_000,
    "\ud800",
    "y" * 300,
]


def uses(path: str) -> list[tuple[str, dict[str, Any]]]:
    """Everything that takes a path."""
    return [
        ("read_file", {"path": path}),
        ("read_file", {"path": path, "first_line": 1, "lines": 1}),
        ("write_file", {"path": path, "content": "broken in"}),
        ("edit_file", {"path": path, "old": "nobody", "new": "everybody"}),
        ("list_directory", {"path": path}),
        ("search_text", {"pattern": ".", "path": path}),
    ]


def picture(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize("path", OUT)
def test_no_path_leads_out(house: House, path: str) -> None:
    before = picture(house.outside)
    for tool, arguments in uses(path):
        told = house.agent.fails(tool, **arguments)
        assert "outside the workspace" in told.message, tool
        assert SECRET not in told.message
    assert picture(house.outside) == before


@pytest.mark.parametrize("path", NOWHERE)
def test_what_looks_like_a_way_out_is_a_name_inside(house: House, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(house.outside))
    before = picture(house.outside.parent)
    for tool, arguments in uses(path):
        if tool != "write_file":
            assert SECRET not in house.agent.fails(tool, **arguments).message
    assert picture(house.outside.parent) == before
    house.agent.tries("write_file", path=path, content="ours")
    after = picture(house.outside.parent)
    assert {name for name in after if name not in before} <= {name for name in after if name.startswith("inside/")}
    assert {name: after[name] for name in before} == before


@pytest.mark.parametrize("path", NO_PATHS, ids=lambda path: f"{path[:10]!r} {len(path)}")
def test_what_is_no_path_is_refused_in_few_words(house: House, path: str) -> None:
    before = picture(house.outside.parent)
    for tool, arguments in uses(path):
        assert len(house.agent.fails(tool, **arguments).message) < 500, tool
    assert picture(house.outside.parent) == before


@pytest.mark.parametrize(
    "pattern",
    ["../**", "../outside/*", "/etc/*", "**/secret.txt", "folder_link/*", "file_link", "*secret*", "sub/up/**"],
)
def test_no_pattern_leads_out(house: House, pattern: str) -> None:
    assert house.agent.does("find_files", pattern=pattern) == "No file matches."


def test_a_search_does_not_follow_links(house: House) -> None:
    assert house.agent.does("search_text", pattern="nobody|root") == "No line matches."


def test_a_link_is_listed_and_not_followed(house: House) -> None:
    listed = house.agent.does("list_directory")
    assert f"folder_link -> {house.outside}" in listed
    assert "secret.txt  " not in listed


def test_an_allowed_folder_is_open_and_its_neighbours_are_not(house: House, tmp_path: Path) -> None:
    agent = Agent(house.inside, [house.outside / "sub"])
    inside = str(house.outside / "sub" / "secret.txt")
    assert agent.does("read_file", path=inside) == SECRET
    assert agent.does("read_file", path="chain/secret.txt") == SECRET
    assert agent.does("search_text", pattern="nobody", path=str(house.outside / "sub")) == f"{inside}:1:{SECRET}"
    assert agent.does("list_directory", path=str(house.outside / "sub")) == f"secret.txt  {len(SECRET)}"
    agent.does("write_file", path=str(house.outside / "sub" / "new" / "file"), content="x")
    for tool, arguments in uses(str(house.outside / "secret.txt")):
        assert "outside the workspace" in agent.fails(tool, **arguments).message


def test_a_workspace_behind_a_link_is_a_workspace(house: House, tmp_path: Path) -> None:
    (tmp_path / "door").symlink_to(house.inside)
    agent = Agent(tmp_path / "door")
    assert agent.does("read_file", path="sub/file.txt") == "ours"
    assert agent.does("read_file", path=str(tmp_path / "door" / "sub" / "file.txt")) == "ours"
    agent.fails("read_file", path="file_link")


# --- what changes while it is looked at ---------------------------------------------------------------------------


class Trapdoor(Workspace):
    """A workspace in which something is swapped for a link right after it was looked at for the nth time."""

    def __init__(self, root: Path, swap: Callable[[], None], looks: int) -> None:
        super().__init__(root)
        self._swap = swap
        self._looks = looks

    def locate(self, path: str) -> Path:
        real = super().locate(path)
        self._looks -= 1
        if not self._looks:
            self._swap()
        return real


def to_link(place: Path, target: Path) -> Callable[[], None]:
    def swap() -> None:
        place.rename(place.with_name("was"))
        place.symlink_to(target)

    return swap


@pytest.mark.parametrize("looks", [1, 2, 3])
@pytest.mark.parametrize("swapped", ["file", "folder", "folder above"])
def test_a_link_swapped_in_during_a_call_is_not_followed(tmp_path: Path, swapped: str, looks: int) -> None:
    for number, (tool, arguments) in enumerate(uses("a/b/secret.txt")):
        inside, outside = tmp_path / str(number) / "in", tmp_path / str(number) / "out"
        for folder in (inside, outside):
            (folder / "a" / "b").mkdir(parents=True)
        (inside / "a" / "b" / "secret.txt").write_text("our nobody")
        (outside / "a" / "b" / "secret.txt").write_text(SECRET)
        (outside / "a" / "b" / "unlisted").touch()
        place, target = {
            "file": ("a/b/secret.txt", "a/b/secret.txt"),
            "folder": ("a/b", "a/b"),
            "folder above": ("a", "a"),
        }[swapped]
        if tool in ("list_directory", "search_text"):
            arguments["path"] = "a/b"
        before = picture(outside)
        agent = Agent(inside, workspace=Trapdoor(inside, to_link(inside / place, outside / target), looks))
        call = agent.tries(tool, **arguments)
        told = str(call.error if isinstance(call, ErroredToolCall) else call)
        assert SECRET not in told, tool
        assert "unlisted" not in told, tool
        assert picture(outside) == before, tool


def test_folders_are_not_made_outside_through_a_link_swapped_in(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    (inside / "a").mkdir(parents=True)
    outside.mkdir()
    for looks in (1, 2, 3):
        agent = Agent(inside, workspace=Trapdoor(inside, to_link(inside / "a", outside), looks))
        agent.tries("write_file", path="a/new/folder/file", content="x")
        assert os.listdir(outside) == []
        if (inside / "was").exists():
            (inside / "a").unlink()
            (inside / "was").rename(inside / "a")


def test_swapping_all_the_time_lets_nothing_out(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    for folder, text in ((inside, "ours"), (outside, SECRET)):
        (folder / "a").mkdir(parents=True)
        (folder / "a" / "file").write_text(text)
    agent, before = Agent(inside), picture(outside)

    async def race() -> list[str]:
        scheduler = agent.scheduler()
        ended = asyncio.Event()

        def swap(turns: int) -> None:
            for _ in range(turns):
                # A writer may make the folder that is missing for a moment.
                with suppress(OSError):
                    os.rename(inside / "a", inside / "real")
                with suppress(OSError):
                    os.symlink(outside / "a", inside / "a")
                with suppress(OSError):
                    os.unlink(inside / "a")
                shutil.rmtree(inside / "a", ignore_errors=True)
                with suppress(OSError):
                    os.rename(inside / "real", inside / "a")

        async def swapping() -> None:
            while not ended.is_set():
                await asyncio.to_thread(swap, 100)

        swapper = asyncio.create_task(swapping())
        told = []
        for turn in range(60):
            # Never the same call: those are asked about.
            way = "./" * turn
            batch = scheduler.schedule(
                [
                    ToolCallRequest("read_file", {"path": f"a/{way}file"}),
                    ToolCallRequest("list_directory", {"path": f"a/{way}"}),
                    ToolCallRequest("write_file", {"path": f"a/{way}file", "content": "ours"}),
                ]
            )
            told += [str(call) for call in await batch]
        ended.set()
        await swapper
        return told

    assert not [told for told in asyncio.run(race()) if SECRET in told]
    assert picture(outside) == before


def test_a_refusal_leaves_no_descriptor_open(house: House) -> None:
    before = open_files()
    workspace = Workspace(house.inside)
    for path in ("sub", "sub/file.txt/x", "sub/nothing", "nothing/x", "."):
        real = workspace.locate(path)
        with pytest.raises(ToolFailure):
            workspace.open(real, path)
    with pytest.raises(ToolFailure):
        workspace.open_folder(workspace.locate("sub/file.txt"), "sub/file.txt", make=True)
    assert open_files() == before
