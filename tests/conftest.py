"""What all tests share: both databases for real, a clock that stands still, and the manifest of promises."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.postgres import Databases, running_server

from punchlist.checklist.service import Checklists
from punchlist.conversations.model import Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.kernel.events import Actor, Role
from punchlist.plan.service import Plans
from punchlist.storage.open import open_store
from punchlist.storage.store import Store
from punchlist.surfaces.cli.agent_guard import AGENT_VARIABLES

ROOT = Path(__file__).parent.parent
SLOWEST = (ROOT / "tests" / "slowest.txt").read_text().split()
"""Files that take more than 20 seconds. They run first, so that the last ones do not run alone."""
SOAK = bool(os.environ.get("PUNCHLIST_SOAK"))
REQUIREMENTS: dict[str, dict[str, str]] = tomllib.loads((Path(__file__).parent / "requirements.toml").read_text())


def pytest_configure() -> None:
    # Whatever started us in the background may have it ignored, and programs that we start would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        # Started by `nohup`. We still ignore it, but programs that we start do not inherit a handler.
        signal.signal(signal.SIGHUP, lambda *_: None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Every id that a test names must be promised; soak tests run only when asked for; slow files come first."""
    places = {ROOT / "tests" / name: place for place, name in enumerate(SLOWEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))
    for item in items:
        for marker in item.iter_markers("spec"):
            unknown = [spec_id for spec_id in marker.args if spec_id not in REQUIREMENTS]
            if unknown:
                raise pytest.UsageError(f"{item.nodeid} names {unknown}: not in tests/requirements.toml")
        if item.get_closest_marker("soak") and not SOAK:
            item.add_marker(pytest.mark.skip(reason="the full numbers run under `make soak`"))
    config.stash[SPEC_TESTS] = {
        spec_id for item in items for marker in item.iter_markers("spec") for spec_id in marker.args
    }


SPEC_TESTS: pytest.StashKey[set[str]] = pytest.StashKey()


# --- processes that a failed test leaves behind ----------------------------------------------------

FAILED: pytest.StashKey[bool] = pytest.StashKey()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        item.stash[FAILED] = True
    return report


@pytest.fixture(autouse=True)
def end_processes_of_a_failed_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that fails may not get to the line that ends its processes."""
    before = set(_children(os.getpid()))
    yield
    if request.node.stash.get(FAILED, False):
        left = [pid for child in set(_children(os.getpid())) - before for pid in (child, *_descendants(child))]
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _children(pid: int) -> list[int]:
    """The child processes of a process, on Linux."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += [int(child) for child in task.read_text().split()]
    return found


def _descendants(pid: int) -> Iterator[int]:
    for child in _children(pid):
        yield child
        yield from _descendants(child)


class StoppedClock:
    """Time that moves when a test says so."""

    def __init__(self) -> None:
        self.now = datetime(2026, 2, 21, 9, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **delta: float) -> None:
        self.now += timedelta(**delta)


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock()


# --- PostgreSQL ------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """A server's URL. Started once per run."""
    with running_server() as url:
        yield url


@pytest.fixture(scope="session")
def databases(postgres_server: str) -> Databases:
    return Databases(postgres_server)


@pytest.fixture
def postgres_url(databases: Databases) -> Iterator[str]:
    """An empty database for one test."""
    url = databases.create()
    yield url
    databases.drop(url)


@pytest.fixture
def prepared_postgres_url(request: pytest.FixtureRequest, databases: Databases) -> Iterator[str]:
    """A database with the schema for one test."""
    url = databases.take()
    yield url
    # A failed test may have left a process that still writes.
    databases.give_back(url, reuse=not request.node.stash.get(FAILED, False))


# --- the store and the services on top of it --------------------------------------------------------


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database; a test that uses it runs on both kinds."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store/punchlist.db"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database without data; a test that uses it runs on both kinds."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store/punchlist.db"
    url: str = request.getfixturevalue("prepared_postgres_url")
    return url


@pytest.fixture
def store(database: str, clock: StoppedClock) -> Iterator[Store]:
    opened = open_store(database, clock=clock)
    yield opened
    opened.close()


@pytest.fixture
def conversations(store: Store) -> Conversations:
    return Conversations(store)


@pytest.fixture
def checklists(store: Store, conversations: Conversations) -> Checklists:
    return Checklists(store, conversations)


@pytest.fixture
def plans(store: Store) -> Plans:
    return Plans(store)


@pytest.fixture
def agent() -> Scope:
    """A supervisor in a session called `s`."""
    return Scope("s", Actor(Role.SUPERVISOR, "test"))


@pytest.fixture
def turn(conversations: Conversations, agent: Scope) -> TurnScope:
    """The same supervisor in the session's open turn."""
    return TurnScope(agent.conversation_id, agent.actor, conversations.open_turn(agent).id)


@pytest.fixture(scope="session", autouse=True)
def shared_data_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """For the key and the trusted databases of fixtures that several tests share; never those of the real user."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("data-home")
        patch.setenv("XDG_DATA_HOME", str(folder))
        yield folder


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own for every test, in which the key and the trusted databases are."""
    folder = tmp_path / "home"
    monkeypatch.setenv("HOME", str(folder))
    for variable in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(variable, raising=False)
    return folder


# --- the program as people run it ------------------------------------------------------------------

Cli = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty project folder."""
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    return folder


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """What a person's shell has, with a home of its own and none of our variables."""
    theirs = ("PUNCHLIST_", "XDG_", "ANTHROPIC_", "OPENAI_", "OLLAMA_")
    kept = {
        name: value
        for name, value in os.environ.items()
        # An agent may run the tests; the commands in them are a person's.
        if not name.startswith(theirs) and name not in AGENT_VARIABLES
    }
    return {**kept, "HOME": str(tmp_path / "home"), "COLUMNS": "80", "NO_COLOR": "1"}


@pytest.fixture
def project_database(database: str, project: Path, environment: dict[str, str]) -> str:
    """The database that programs in the project use: its own SQLite file, or one that the environment names."""
    if database.startswith("sqlite"):
        return f"sqlite:///{project}/.punchlist/punchlist.db"
    environment["PUNCHLIST_DATABASE_URL"] = database
    return database


@pytest.fixture
def punchlist(project: Path, environment: dict[str, str]) -> Cli:
    """Run a command in the project folder, as a real process."""

    def run(*arguments: str, input: str | None = None, **extra: Any) -> subprocess.CompletedProcess[str]:
        env = {**environment, **extra.pop("env", {})}
        return subprocess.run(
            [sys.executable, "-m", "punchlist", *arguments],
            cwd=extra.pop("cwd", project),
            env=env,
            input=input if input is not None else "",
            capture_output=True,
            text=True,
            timeout=extra.pop("timeout", 60),
            check=False,
        )

    return run
