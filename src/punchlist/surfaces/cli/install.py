"""`punchlist install`, `uninstall` and `status`: beside the agents that people already run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from punchlist.config import project_root
from punchlist.errors import Conflict
from punchlist.integrations.install.host_names import HostName
from punchlist.kernel.text import visible, visible_block
from punchlist.surfaces.cli.context import JsonOption, cli_context, echo, echo_json

if TYPE_CHECKING:
    from punchlist.integrations.install.files import FileChange
    from punchlist.integrations.install.installer import Installer, InstallPlan

AgentArgument = Annotated[HostName, typer.Argument(metavar="AGENT", help=f"{', '.join(HostName)}.", show_default=False)]
UserOption = Annotated[bool, typer.Option("--user", help="For all your projects, instead of this one.")]
DryOption = Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def install(
    context: typer.Context,
    agent: AgentArgument,
    user: UserOption = False,
    dry_run: DryOption = False,
    yes: YesOption = False,
    command: Annotated[
        str | None, typer.Option("--command", metavar="CMD", help="How Punchlist is started. Default: found out.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Give an agent you already run these lists, and send it back to them until they are clear.

    Registers the MCP server and the hooks in the agent's own configuration, shows the change first, and keeps backups.
    """
    from punchlist.integrations.install.entry_command import given

    cli_context(context).json = as_json
    there = _installation(agent, user)
    program = given(command) if command is not None else None
    task = _InstallJob(
        there,
        lambda: there.install(program),
        nothing=f"{there.host.title}: already installed for {_where(there)}. There is nothing to change.",
        done=f"Installed. {there.host.title} has the lists as tools now, and is sent back to its list while items are "
        f"open.\nUndo it with: punchlist uninstall {agent}{' --user' if user else ''}",
        start_in=there.start_in(),
        here=tuple(there.seen_from(Path.cwd())),
    )
    _carry_out(task, dry_run=dry_run, yes=yes, as_json=as_json)


def uninstall(
    context: typer.Context,
    agent: AgentArgument,
    user: UserOption = False,
    dry_run: DryOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Take out of an agent's configuration what `install` put in, and nothing else."""
    cli_context(context).json = as_json
    there = _installation(agent, user)
    task = _InstallJob(
        there,
        there.uninstall,
        nothing=f"{there.host.title}: not installed for {_where(there)}. There is nothing to take out.",
        done="Uninstalled. Sessions that are open already notice it when they are started again.",
    )
    _carry_out(task, dry_run=dry_run, yes=yes, as_json=as_json)


class _InstallJob(NamedTuple):
    there: Installer
    plan: Callable[[], InstallPlan]
    nothing: str
    done: str
    start_in: Path | None = None
    here: tuple[str, ...] = ()
    """What there is to know in the folder that this is called in."""


def _carry_out(task: _InstallJob, *, dry_run: bool, yes: bool, as_json: bool) -> None:
    there, agreed = task.there, None
    if dry_run:
        _tell(task, _shown(task, quiet=as_json), None, as_json)
        return
    if not yes:
        agreed = _shown(task, error=as_json)
        if agreed.changes and sys.stdin.isatty():
            # A script that runs this command has said what it wants; it is shown, kept and can be undone all the same.
            typer.confirm("Make these changes?", default=True, abort=True, err=True)
    with there.alone():
        plan = task.plan() if agreed else _shown(task, quiet=as_json)
        if agreed and plan.changes != agreed.changes:
            raise Conflict("The files were changed meanwhile. Nothing was changed by this command; run it again.")
        # Also where there is nothing to take out any more: then it is not on record any longer.
        backups = there.carry_out(plan)
    _tell(task, plan, backups, as_json)


def _tell(task: _InstallJob, plan: InstallPlan, backups: list[Path] | None, as_json: bool) -> None:
    """What was done; `backups` is None if it was only to show."""
    notes = [*task.here, *task.there.notes(plan)]
    if as_json:
        echo_json(
            {
                "agent": task.there.host.name,
                "scope": task.there.place.scope,
                "changes": [_change_json(change) for change in plan.changes],
                "done": bool(plan.changes) and backups is not None,
                "backups": [str(backup) for backup in backups or ()],
                "startIn": str(task.start_in) if task.start_in else None,
                "notes": notes,
            }
        )
        return
    if not plan.changes:
        echo(task.nothing)
    else:
        echo(task.done if backups is not None else "Nothing was changed; this was only to show.")
    for backup in backups or ():
        echo(f"Backup: {visible(backup)}")
    for note in notes:
        echo(visible(note))


def _change_json(change: FileChange) -> dict[str, str]:
    from punchlist.integrations.install.diff import diff

    return {"path": str(change.path), "action": change.action, "diff": diff(change)}


def _shown(task: _InstallJob, *, quiet: bool = False, error: bool = False) -> InstallPlan:
    """What would change, after somebody has seen it."""
    from punchlist.integrations.install.diff import diff

    plan = task.plan()
    if not plan.changes or quiet:
        return plan
    echo(f"{task.there.host.title}, for {_where(task.there)}:\n", error=error)
    for change in plan.changes:
        if real := task.there.led_outside(change.path):
            echo(f"{visible(change.path)} leads out of the project, to {visible(real)}:", error=error)
        # Ends of lines of another system are not what the change is about.
        echo(visible_block(diff(change).replace("\r\n", "\n")), error=error)
    return plan


def _installation(agent: HostName, user: bool) -> Installer:
    from punchlist.integrations.install.hosts import HOSTS, InstallScope
    from punchlist.integrations.install.installer import Installer, place

    scope = InstallScope.USER if user else InstallScope.PROJECT
    return Installer(HOSTS[agent], place(scope, project_root(Path.cwd()), os.environ))


def _where(there: Installer) -> str:
    from punchlist.integrations.install.hosts import InstallScope

    return "you" if there.place.scope is InstallScope.USER else f"the project {visible(there.place.root)}"


# --- status ----------------------------------------------------------------------------------------------------------


def status(
    context: typer.Context,
    agent: Annotated[
        HostName | None, typer.Argument(metavar="[AGENT]", help="Only this one.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show in which agents Punchlist is installed, whether all of it is there, and what went wrong in its hooks."""
    from punchlist.integrations.install.status import hook_logs, standing

    cli_context(context).json = as_json
    here = Path.cwd()
    root = project_root(here)
    found = [standing(name, root, here, os.environ) for name in ([agent] if agent else HostName)]
    logs = hook_logs(root, os.environ)
    if as_json:
        echo_json({"agents": [one.as_json() for one in found], "logs": [log.as_json() for log in logs]})
        return
    for one in found:
        echo("\n".join(visible(line) for line in one.lines()))
    for log in logs:
        echo(f"\n{visible(log.path)}: {log.count} line{'s' if log.count != 1 else ''}, the last:")
        for line in log.last:
            echo(f"  {visible(line)}")
