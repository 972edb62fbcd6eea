"""A panel above the other screens: reads in a thread, and reads again after every write of any process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from textual.screen import ModalScreen
from textual.worker import get_current_worker

from punchlist.errors import PunchlistError
from punchlist.storage.change_watch import ChangeWatch

if TYPE_CHECKING:
    from punchlist.surfaces.tui.app import PunchlistApp
    from punchlist.surfaces.tui.backend import Backend

T = TypeVar("T")
WATCH_SECONDS = 0.25


class PanelScreen(ModalScreen[None], Generic[T]):
    app: PunchlistApp

    def __init__(self) -> None:
        super().__init__()
        self.data: T | None = None

    @property
    def backend(self) -> Backend:
        return self.app.backend

    def load(self) -> T:
        """Read what the panel shows. Called in a thread."""
        raise NotImplementedError

    def show(self, data: T) -> None:
        raise NotImplementedError

    def on_mount(self) -> None:
        self.reload()
        self.run_worker(self._watch, thread=True, group="watch")

    def reload(self) -> None:
        self.run_worker(self._load, thread=True, group="load", exclusive=True)

    def act(self, work: Callable[[], object], done: str = "") -> None:
        """Call a service in a thread; say what was done, or why it was not."""

        def run() -> None:
            try:
                work()
            except PunchlistError as error:
                self._tell(str(error), failed=True)
            else:
                if done:
                    self._tell(done)
                self._load()

        self.run_worker(run, thread=True, group="act")

    def action_close(self) -> None:
        self.dismiss(None)

    def say(self, text: str, *, failed: bool = False) -> None:
        self.app.say(text, "error" if failed else "information")

    def _tell(self, text: str, *, failed: bool = False) -> None:
        self.app.call_from_thread(self.say, text, failed=failed)

    def _load(self) -> None:
        try:
            data = self.load()
        except PunchlistError as error:
            self._tell(str(error), failed=True)
            return
        if self.is_mounted and not get_current_worker().is_cancelled:
            self.app.call_from_thread(self._show, data)

    def _show(self, data: T) -> None:
        if self.is_mounted:
            self.data = data
            self.show(data)

    def _watch(self) -> None:
        worker = get_current_worker()
        with ChangeWatch(self.backend.services.store) as watch:
            while not worker.is_cancelled:
                if watch.wait(WATCH_SECONDS) and not worker.is_cancelled:
                    self._load()
