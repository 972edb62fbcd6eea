"""`punchlist install`, `uninstall` and `status`: Punchlist in third-party agents."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from punchlist.config import project_root
from punchlist.errors import Conflict, NotAllowed, PunchlistError
from punchlist.integrations.install.host_names import HostName, InstallScope
from punchlist.kernel.text import visible, visible_block
from punchlist.surfaces.cli.agent_guard import refuse_for_agents
from punchlist.surfaces.cli.context import CliContext, confirm, echo, echo_json, format_time
from punchlist.surfaces.cli.offered_lists import OfferedLists

if TYPE_CHECKING:
    from punchlist.integrations.install.files import FileChange
    from punchlist.integrations.install.installer import Installer, InstallPlan
    from punchlist.views.health import SystemHealth

AgentArgument = Annotated[HostName, typer.Argument(metavar="AGENT", help=f"{', '.join(HostName)}.", show_default=False)]
UserOption = Annotated[bool, typer.Option("--user", help="For all your projects, instead of this one.")]
DryOption = Annotated[bool, typer.Option("--dry-run", help="Only show the changes.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


def install(
    cli: CliContext,
    agent: AgentArgument,
    user: UserOption = False,
    dry_run: DryOption = False,
    yes: YesOption = False,
    command: Annotated[
        str | None,
        typer.Option("--command", metavar="CMD", help="The command that starts Punchlist. Default: detected."),
    ] = None,
    lists: Annotated[
        OfferedLists | None,
        typer.Option(help="The lists that the agent is offered. Default: plan, or what is installed."),
    ] = None,
) -> None:
    """Install Punchlist in an agent you already run: its lists as tools, and hooks that keep it working on them.

    Registers the MCP server and the hooks in the agent's own settings. Shows the changes first, and keeps backups.
    """
    from punchlist.integrations.install.entry_command import parse_command

    installer = _installer(agent, user)
    program = parse_command(command) if command is not None else None
    job = _InstallJob(
        installer,
        lambda: installer.plan_install(program, lists),
        unchanged=f"{installer.host.title}: already installed for {_target(installer)}. There is nothing to change.",
        done=f"Installed. {installer.host.title} now has the lists as tools, and continues while items are open.\n"
        f"Undo it with: punchlist uninstall {agent}{' --user' if user else ''}",
        start_folder=installer.start_folder(),
        folder_notes=tuple(installer.folder_notes(Path.cwd())),
    )
    _run(cli, job, dry_run=dry_run, yes=yes)


def uninstall(
    cli: CliContext, agent: AgentArgument, user: UserOption = False, dry_run: DryOption = False, yes: YesOption = False
) -> None:
    """Remove what `install` added to an agent's settings, and nothing else."""
    installer = _installer(agent, user)
    other = _installer(agent, not user)
    elsewhere = ""
    # A file that cannot be read is reported when that scope is uninstalled.
    with suppress(PunchlistError):
        if other.plan_uninstall().changes:
            elsewhere = f" It is installed for {_target(other)}: punchlist uninstall {agent}{'' if user else ' --user'}"
    job = _InstallJob(
        installer,
        installer.plan_uninstall,
        unchanged=f"{installer.host.title}: not installed for {_target(installer)}. There is nothing to remove."
        f"{elsewhere}",
        done="Uninstalled. Restart open sessions for this to take effect.",
    )
    _run(cli, job, dry_run=dry_run, yes=yes)


class _InstallJob(NamedTuple):
    installer: Installer
    plan: Callable[[], InstallPlan]
    unchanged: str
    done: str
    start_folder: Path | None = None
    folder_notes: tuple[str, ...] = ()


def _run(cli: CliContext, job: _InstallJob, *, dry_run: bool, yes: bool) -> None:
    confirmed = None
    if dry_run:
        _report(cli, job, _show_plan(job, quiet=cli.json), None)
        return
    refuse_for_agents("install and uninstall")
    if not yes:
        confirmed = _show_plan(job, error=cli.json)
        if confirmed.changes:
            _confirm()
    with job.installer.lock():
        plan = job.plan() if confirmed else _show_plan(job, quiet=cli.json)
        if confirmed and plan.changes != confirmed.changes:
            raise Conflict("The files changed meanwhile. This command changed nothing; run it again.")
        # A plan without changes can still remove the record of an installation.
        backups = job.installer.apply(plan)
    _report(cli, job, plan, backups)


def _confirm() -> None:
    if not sys.stdin.isatty():
        raise NotAllowed("There is no terminal to ask, so nothing was changed. Confirm the changes with --yes.")
    confirm("Make these changes?", default=True)


def _report(cli: CliContext, job: _InstallJob, plan: InstallPlan, backups: list[Path] | None) -> None:
    """`backups` is None for a dry run."""
    notes = [*job.folder_notes, *job.installer.notes(plan)]
    if cli.json:
        echo_json(
            {
                "agent": job.installer.host.name,
                "scope": job.installer.location.scope,
                "changes": [_change_json(change) for change in plan.changes],
                "done": bool(plan.changes) and backups is not None,
                "backups": [str(backup) for backup in backups or ()],
                "startIn": str(job.start_folder) if job.start_folder else None,
                "notes": notes,
            }
        )
        return
    if not plan.changes:
        echo(job.unchanged)
    else:
        echo(job.done if backups is not None else "Dry run: nothing was changed.")
    for backup in backups or ():
        echo(f"Backup: {visible(backup)}")
    for note in notes:
        echo(visible(note))


def _change_json(change: FileChange) -> dict[str, str]:
    from punchlist.integrations.install.files import diff

    return {"path": str(change.path), "action": change.action, "diff": diff(change)}


def _show_plan(job: _InstallJob, *, quiet: bool = False, error: bool = False) -> InstallPlan:
    from punchlist.integrations.install.files import diff

    plan = job.plan()
    if not plan.changes or quiet:
        return plan
    echo(f"{job.installer.host.title}, for {_target(job.installer)}:\n", error=error)
    for change in plan.changes:
        if target := job.installer.target_outside_project(change.path):
            echo(f"{visible(change.path)} leads out of the project, to {visible(target)}:", error=error)
        # Do not spell out the carriage returns of CRLF files.
        echo(visible_block(diff(change).replace("\r\n", "\n")), error=error)
    return plan


def _installer(agent: HostName, user: bool) -> Installer:
    from punchlist.integrations.install.hosts import HOSTS
    from punchlist.integrations.install.installer import Installer, install_location

    scope = InstallScope.USER if user else InstallScope.PROJECT
    return Installer(HOSTS[agent], install_location(scope, project_root(Path.cwd()), os.environ))


def _target(installer: Installer) -> str:
    location = installer.location
    return "you" if location.scope is InstallScope.USER else f"the project {visible(location.root)}"


def _database_problem(cli: CliContext) -> str | None:
    """Why hooks and servers do not use the database of this folder."""
    services = cli.services()
    services.on_untrusted_database = None
    try:
        services.check_database()
    except PunchlistError as problem:
        return str(problem)
    return None


def status(
    cli: CliContext,
    agent: Annotated[
        HostName | None, typer.Argument(metavar="[AGENT]", help="Only this agent.", show_default=False)
    ] = None,
) -> None:
    """Show where Punchlist is installed, whether the installation is complete, and errors of its hooks."""
    from punchlist.integrations.install.status import hook_logs, host_status

    folder = Path.cwd()
    root = project_root(folder)
    hosts = [host_status(name, root, folder, os.environ) for name in ([agent] if agent else HostName)]
    logs = hook_logs(root, os.environ)
    problem = _database_problem(cli)
    health = None if problem or agent else _health(cli)
    if cli.json:
        found = {"agents": [host.as_json() for host in hosts], "logs": [log.as_json() for log in logs]}
        echo_json({**found, "databaseProblem": problem, **(health.as_json() if health else {})})
        return
    if problem:
        echo(f"Hooks stay silent here: {visible(problem)}\n")
    for host in hosts:
        echo("\n".join(visible(line) for line in host.lines()))
    for log in logs:
        echo(f"\n{visible(log.path)}: {log.count} line{'s' if log.count != 1 else ''}, the last:")
        for line in log.last:
            echo(f"  {visible(line)}")
    if health is not None and health.missions:
        echo(f"\nMissions ({len(health.workers)} live workers)")
        for mission in health.missions:
            coming = f"next cycle {format_time(mission.next_cycle)}" if mission.next_cycle else "no cycle planned"
            last = f"last {format_time(mission.last_cycle)}" if mission.last_cycle else "none so far"
            echo(f"  {mission.mission.slug}: {coming}, {last}, {mission.open_runs} open runs")
            for line in mission.problems:
                echo(f"    ! {visible(line)}")


def _health(cli: CliContext) -> SystemHealth | None:
    """Of the missions here; None without a database."""
    from punchlist.storage.open import parse_database_url
    from punchlist.views.health import read_health

    services = cli.services()
    file = parse_database_url(services.settings.database).file
    if file is not None and not file.exists():
        return None
    return read_health(services.store)
