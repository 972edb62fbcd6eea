"""`punchlist db`: locate, check, upgrade, back up and restore the database."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from punchlist.errors import NotAllowed, StoreDamaged
from punchlist.kernel.text import visible
from punchlist.surfaces.cli.agent_guard import refuse_for_agents
from punchlist.surfaces.cli.context import CliContext, confirm, supports_ansi

if TYPE_CHECKING:
    from punchlist.app import Services
    from punchlist.audit.check import CheckReport

app = typer.Typer(help="Check, upgrade, back up and restore the database.", no_args_is_help=True)


@app.command()
def path(cli: CliContext) -> None:
    """Print the address of the database, without its password."""
    address = _address(cli.services())
    cli.show({"database": address}, address)


@app.command()
def check(cli: CliContext) -> None:
    """Check integrity, schema, the event log, and every list against the log. Exit code 1 if there is a problem."""
    from punchlist.audit.check import check as run_check
    from punchlist.storage.open import open_existing, read_schema_version

    services = cli.services()
    services.check_database()
    store = open_existing(services.settings.database)
    store.sign_with(services.trust.key)
    revision = read_schema_version(store)
    if revision is None:
        raise StoreDamaged(
            f"{_address(services)} has no Punchlist schema: it is new, damaged or belongs to another program."
        )
    report = run_check(store, revision, _progress)
    if reason := store.database.read_only_reason():
        report.warnings.append(reason)
    if supports_ansi(sys.stderr):
        print("\r\x1b[K", end="", file=sys.stderr)
    address = _address(services)
    cli.show({"database": address, "healthy": report.healthy, **asdict(report)}, _report_lines(address, report))
    if not report.healthy:
        raise typer.Exit(1)


@app.command()
def upgrade(cli: CliContext) -> None:
    """Upgrade the schema. Every command does this on first use."""
    from punchlist.storage.open import connect, read_schema_version
    from punchlist.storage.schema_version import SCHEMA_VERSION

    services = cli.services()
    services.check_database()
    before = read_schema_version(connect(services.settings.database))
    _ = services.store
    did = f"Upgraded from schema {before} to" if before else "Created a new database, schema"
    text = "Already at schema" if before == SCHEMA_VERSION else did
    cli.show({"database": _address(services), "from": before, "to": SCHEMA_VERSION}, f"{text} {SCHEMA_VERSION}.")


@app.command()
def backup(
    cli: CliContext, file: Annotated[Path, typer.Argument(metavar="FILE", help="The new file to write.")]
) -> None:
    """Copy the database to a file. The copy is consistent while agents write."""
    from punchlist.storage.maintenance import backup as run_backup
    from punchlist.storage.open import open_existing

    services = cli.services()
    services.check_database()
    run_backup(open_existing(services.settings.database), file)
    cli.show(
        {"database": _address(services), "backup": str(file), "bytes": file.stat().st_size},
        f"Wrote {visible(str(file))} ({file.stat().st_size:,} bytes).",
    )


@app.command()
def restore(
    cli: CliContext,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `db backup` wrote.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
) -> None:
    """Replace the database by a backup. The replaced file is kept beside it."""
    from punchlist.storage.maintenance import restore as run_restore
    from punchlist.storage.open import connect

    refuse_for_agents("db restore")
    services = cli.services()
    if not yes:
        if not sys.stdin.isatty():
            raise NotAllowed(
                "`db restore` replaces the database. There is no terminal to ask, so nothing was changed. Confirm "
                "with --yes."
            )
        confirm(f"Replace {_address(services)} by {visible(str(file))}?")
    # The backup replaces a database of another author too, which is then kept beside it as any other.
    services.settings.check_database_is_trusted()
    store = connect(services.settings.database)
    store.sign_with(services.trust.key)
    kept = run_restore(store, file, services.trust)
    cli.show(
        {"database": _address(services), "restored": str(file), "kept": str(kept) if kept else None},
        f"Restored {visible(str(file))}." + (f" The old database is kept as {visible(str(kept))}." if kept else ""),
    )


def _address(services: Services) -> str:
    from punchlist.storage.open import parse_database_url

    address = parse_database_url(services.settings.database)
    return visible(str(address.file.absolute()) if address.file else address.display)


def _progress(events: int) -> None:
    if supports_ansi(sys.stderr):
        print(f"\r{events:,} events checked", end="", file=sys.stderr, flush=True)


def _report_lines(address: str, report: CheckReport) -> Iterator[str]:
    yield f"{address}  (schema {visible(report.revision)})"
    for size in report.sizes:
        if size.rows:
            yield f"  {size.table:<16} {size.rows:>10,} rows {size.bytes:>14,} bytes"
    yield from (f"! {visible(warning)}" for warning in report.warnings)
    yield from (f"✗ {visible(problem)}" for problem in report.problems)
    if report.healthy:
        yield f"✓ Healthy: {report.events:,} events, every list matches its events."
