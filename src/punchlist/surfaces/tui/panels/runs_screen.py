"""Background runs: pause, resume, redirect, stop (M11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widgets import Footer, OptionList
from textual.widgets.option_list import Option

from punchlist.conversations.model import Scope
from punchlist.runs.lifecycle import ControlRequest, RunStatus
from punchlist.runs.model import Run
from punchlist.surfaces.figures import age_of, format_age, format_count
from punchlist.surfaces.tui.dialogs import ConfirmDialog, LineDialog
from punchlist.surfaces.tui.display_text import assemble, line
from punchlist.surfaces.tui.key_table import KeyScope, bindings
from punchlist.surfaces.tui.panels.panel_screen import PanelScreen
from punchlist.views.home import run_title
from punchlist.views.runs import read_runs

_STYLES = {
    RunStatus.RUNNING: "$working",
    RunStatus.WAITING: "$needs-you",
    RunStatus.PAUSED: "$needs-you",
    RunStatus.FAILED: "$failed",
}
MAX_RUNS = 200


def _requested(run: Run) -> str:
    """What a person wants and the worker has not done yet."""
    if run.wish is None or run.ended_at is not None:
        return ""
    is_paused = run.wish is ControlRequest.PAUSE and run.status is RunStatus.PAUSED
    return "" if is_paused else f"{run.wish.value} requested  "


class RunsScreen(PanelScreen[Sequence[tuple[Run, str]]]):
    """Its data are the runs and what each is about."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(KeyScope.RUNS)]
    DEFAULT_CSS = """
    RunsScreen { align: center middle; }
    RunsScreen > Vertical {
        width: 110; max-width: 98%; height: 80%; background: $surface; border: round $border; padding: 0 1;
    }
    RunsScreen OptionList, RunsScreen OptionList:focus { border: none; }
    RunsScreen OptionList { height: 1fr; background: $surface; }
    """

    def __init__(self, todo_id: str | None = None) -> None:
        super().__init__()
        self._todo_id = todo_id
        self._with_ended = todo_id is not None

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = "Runs"
            yield OptionList(markup=False)
            yield Footer(compact=True)

    def load(self) -> Sequence[tuple[Run, str]]:
        store = self.backend.services.store
        page = read_runs(store, todo_id=self._todo_id, open_only=not self._with_ended, limit=MAX_RUNS)
        with store.read() as tx:
            return [(run, run_title(tx, run)) for run in page.runs]

    def show(self, data: Sequence[tuple[Run, str]]) -> None:
        options = self.query_one(OptionList)
        place = options.highlighted or 0
        now = self.backend.now()
        rows = [
            assemble(
                f"{run.id[-8:]}  ",
                (f"{run.status.value:<9}", _STYLES.get(run.status, "$quiet")),
                f" {run.kind.value:<8} {format_age(age_of(run.created_at, now)):>6}  ",
                line(title, 200),
                (f"  {_requested(run)}", "$needs-you"),
                (
                    f"{format_count(run.input_tokens + run.output_tokens)} tokens  {line(run.agent)}  "
                    f"{line(run.why, 200)}",
                    "$quiet",
                ),
            )
            for run, title in data
        ]
        options.set_options(
            [Option(row) for row in rows] or [Option("No open runs. a shows ended ones.", disabled=True)]
        )
        if rows:
            options.highlighted = min(place, len(rows) - 1)

    @property
    def _chosen(self) -> Run | None:
        place = self.query_one(OptionList).highlighted
        return self.data[place][0] if self.data and place is not None and place < len(self.data) else None

    def action_pause(self) -> None:
        if (run := self._chosen) is not None:
            self.act(lambda: self.backend.services.runs.pause(self._scope(run), run.id), "Pause requested.")

    def action_resume(self) -> None:
        if (run := self._chosen) is not None:
            self.act(lambda: self.backend.services.runs.resume(self._scope(run), run.id), "Resumed.")

    def action_stop(self) -> None:
        if (run := self._chosen) is None:
            return

        def answered(yes: bool | None) -> None:
            if yes:
                runs = self.backend.services.runs
                self.act(lambda: runs.stop(self._scope(run), run.id), "Stop requested.")

        question = f"Stop run {run.id[-8:]} ({run.kind.value})? Its work ends; a stopped run is not resumed."
        self.app.push_screen(ConfirmDialog(question), answered)

    def action_redirect(self) -> None:
        if (run := self._chosen) is None:
            return

        def send(text: str | None) -> None:
            if text is not None:
                work = self.backend.services.runs
                self.act(lambda: work.redirect(self._scope(run), run.id, text), "The agent gets your message.")

        self.app.push_screen(LineDialog(f"Message to the agent of run {run.id[-8:]}"), send)

    def action_ended(self) -> None:
        self._with_ended = not self._with_ended
        self.reload()

    def _scope(self, run: Run) -> Scope:
        return self.backend.scope(run.conversation_id)
