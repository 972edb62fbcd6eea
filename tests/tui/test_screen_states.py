"""Every state of the screens, at three widths, as text; and the colours of the themes.

The text is in `screens/`. `UPDATE_SNAPSHOTS=1` writes it anew; read the difference.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Final

import pytest
from rich.color import Color as TerminalColor
from rich.segment import Segment
from textual.color import Color
from textual.pilot import Pilot

from punchlist.app import Services
from punchlist.config import load
from punchlist.conversations.model import MessageRole, Scope
from punchlist.kernel.events import Actor, Role
from punchlist.surfaces.tui.agent_options import AgentOptions
from punchlist.surfaces.tui.app import PunchlistApp
from punchlist.surfaces.tui.backend import Backend

pytestmark = pytest.mark.anyio
SCREENS: Final = Path(__file__).parent / "screens"
WIDTHS: Final = (40, 80, 120)
HEIGHT: Final = 20
SECONDS: Final = 40.0
AGENT: Final = Actor(Role.SUPERVISOR, "supervisor")
PERSON: Final = Actor(Role.PERSON, "ada")
REPLY: Final = """The build is **slow**, since every page is rendered twice.

- `render` is called by `save`
- and again by `publish`

```python
def save(page):
    render(page)
```
"""
CALLS: Final = (
    '{"text": "I look.", "calls": ['
    '{"id": "call1", "tool": "read_file", "arguments": {"path": "src/pages.py"}}, '
    '{"id": "call2", "tool": "run_command", "arguments": {"command": "make pages"}}]}'
)


@pytest.fixture
def services(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    monkeypatch.setenv("COLORTERM", "truecolor")
    # All ages are `now`.
    monkeypatch.setattr(Backend, "now", lambda _: datetime(2026, 1, 1, tzinfo=UTC))
    monkeypatch.chdir(project)
    built = Services(load(cwd=project))
    yield built
    built.close()


@asynccontextmanager
async def screen(services: Services, session: str | None = None) -> AsyncIterator[tuple[PunchlistApp, Pilot[str]]]:
    app = PunchlistApp(lambda: Backend(services, AgentOptions("rehearsal:x.yaml")), session=session)
    async with app.run_test(size=(WIDTHS[-1], HEIGHT)) as pilot:
        yield app, pilot


async def until(pilot: Pilot[str], holds: Callable[[], bool]) -> None:
    end = monotonic() + SECONDS
    while not holds():
        assert monotonic() < end, painted(pilot.app)
        await pilot.pause(0.02)


async def until_painted(pilot: Pilot[str], words: str) -> None:
    await until(pilot, lambda: words in painted(pilot.app))


def strips(app: object) -> list[list[Segment]]:
    assert isinstance(app, PunchlistApp)
    return [list(strip) for strip in app.screen._compositor.render_strips()]


def painted(app: object) -> str:
    lines = ("".join(segment.text for segment in strip).rstrip() for strip in strips(app))
    return "\n".join(lines)


async def compare(name: str, pilot: Pilot[str], folder: Path, height: int = HEIGHT) -> None:
    """Compare the screen at all widths with its snapshot."""
    parts = []
    for width in WIDTHS:
        await pilot.resize_terminal(width, height)
        await pilot.pause()
        await pilot.pause()
        text = painted(pilot.app).replace(str(folder), "/project").replace(folder.name, "project")
        parts.append(f"=== {width} columns\n{text}\n")
    shown, file = "\n".join(parts), SCREENS / f"{name}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        file.write_text(shown)
    assert shown == file.read_text(), f"{file} differs; UPDATE_SNAPSHOTS=1 writes it anew"


def write_conversation(services: Services) -> None:
    """A turn that has ended, with a list."""
    scope, person = Scope("pages", AGENT), Scope("pages", PERSON)
    services.todos.add(person, ["Find out why the build is slow", "Render each page once"], reason="test")
    services.todos.complete(person, "1", reason="test")
    turn = services.conversations.begin_turn(scope, reason="test")
    say = services.conversations.add_message
    say(scope, MessageRole.USER, "Why is the build slow?", turn_id=turn.id)
    say(scope, MessageRole.ASSISTANT, CALLS, kind="reply", turn_id=turn.id)
    say(scope, MessageRole.ASSISTANT, REPLY, turn_id=turn.id)
    services.conversations.end_turn(scope, reason="completed")


@pytest.mark.spec("X13")
async def test_home_while_it_loads_without_and_with_sessions(services: Services, project: Path) -> None:
    opened = threading.Event()

    def open_backend() -> Backend:
        assert opened.wait(30)
        return Backend(services, AgentOptions("rehearsal:x.yaml"))

    app = PunchlistApp(open_backend)
    async with app.run_test(size=(WIDTHS[-1], HEIGHT)) as pilot:
        await compare("home-loading", pilot, project)
        opened.set()
        await until_painted(pilot, "Nothing here yet")
        await compare("home-empty", pilot, project)
        write_conversation(services)
        await until_painted(pilot, "Why is the build slow?")
        await compare("home", pilot, project)
        await pilot.resize_terminal(20, 8)
        await until_painted(pilot, "Too small")


@pytest.mark.spec("W9")
async def test_a_conversation_without_and_with_entries(services: Services, project: Path) -> None:
    async with screen(services, "pages") as (_, pilot):
        await until_painted(pilot, "A new conversation")
        await compare("conversation-empty", pilot, project)
        write_conversation(services)
        await until_painted(pilot, "The build is slow")
        await compare("conversation", pilot, project, 36)


@pytest.mark.spec("X13")
async def test_a_database_that_cannot_be_read_is_told_until_it_can(services: Services, project: Path) -> None:
    del project
    write_conversation(services)
    database = Path(services.settings.database)
    for session in (None, "pages"):
        async with screen(services, session) as (app, pilot):
            await until_painted(pilot, "Why is the build slow?")
            # In one step: the application would make a new database while there is none.
            aside, damaged = database.with_suffix(".aside"), database.with_suffix(".damaged")
            aside.hardlink_to(database)
            damaged.write_text("This is no database. " * 20)
            damaged.replace(database)
            app._data_changed()
            for width in WIDTHS:
                await pilot.resize_terminal(width, HEIGHT)
                await until_painted(pilot, "✗")
            aside.rename(database)
            await until(pilot, lambda: "✗" not in painted(pilot.app))
            assert "Why is the build slow?" in painted(app)


async def test_all_text_can_be_read_in_both_themes(services: Services) -> None:
    write_conversation(services)
    async with screen(services, "pages") as (app, pilot):
        await until_painted(pilot, "The build is slow")
        for theme in ("dark", "light"):
            app.theme = f"punchlist-{theme}"
            background = Color.parse(app.current_theme.background or "").rich_color
            await until(pilot, lambda color=background: color in {*_colors(app)})  # type: ignore[misc]
            assert not {*_faint(app)}


def _faint(app: PunchlistApp) -> Iterator[tuple[str, str, str]]:
    """Words whose contrast with what is behind them is below 4.5."""
    for strip in strips(app):
        for segment in strip:
            style = segment.style
            if style is None or style.color is None or style.bgcolor is None or not re.search(r"\w", segment.text):
                continue
            colors = [Color.from_rich_color(each) for each in (style.color, style.bgcolor)]
            light, dark = sorted((_luminance(each) for each in colors), reverse=True)
            if (light + 0.05) / (dark + 0.05) < 4.5:
                yield segment.text.strip(), colors[0].hex, colors[1].hex


def _luminance(color: Color) -> float:
    parts = [each / 255 for each in color.rgb]
    red, green, blue = (each / 12.92 if each <= 0.03928 else ((each + 0.055) / 1.055) ** 2.4 for each in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


async def test_sixteen_colours_are_the_terminals_own(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUNCHLIST_THEME", "terminal-dark")
    write_conversation(services)
    async with screen(services, "pages") as (app, pilot):
        await until_painted(pilot, "The build is slow")
        others = {color for color in _colors(app) if color.triplet is not None}
        assert not others


async def test_no_colour_is_used_where_none_is_wanted(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    write_conversation(services)
    async with screen(services, "pages") as (app, pilot):
        await until_painted(pilot, "The build is slow")
        await pilot.press("ctrl+l")
        # The chosen row can be seen.
        await until(pilot, lambda: "Render each page once" in _underlined(app))
        assert not {color for color in _colors(app) if not color.is_default}


def _underlined(app: PunchlistApp) -> str:
    return " ".join(s.text for strip in strips(app) for s in strip if s.style is not None and s.style.underline)


def _colors(app: PunchlistApp) -> Iterator[TerminalColor]:
    for strip in strips(app):
        for segment in strip:
            if segment.style is not None:
                yield from filter(None, (segment.style.color, segment.style.bgcolor))
