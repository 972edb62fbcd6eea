"""`punchlist trust`: review what a project brings along, and decide whether it may take effect."""

from __future__ import annotations

import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from punchlist.errors import InvalidInput, NotAllowed, NotFound
from punchlist.kernel.text import excerpt, visible
from punchlist.surfaces.cli.agent_guard import agent_evidence, refuse_for_agents
from punchlist.surfaces.cli.context import CliContext, confirm, discard_typed_keys, echo

if TYPE_CHECKING:
    from punchlist.app import Services
    from punchlist.storage.adoption import DatabaseContent
    from punchlist.storage.trusted_files import UntrustedDatabase
    from punchlist.trust import TrustEntry

app = typer.Typer(
    help="Review and trust what a project brings along: its settings, and a database that you did not create.\n\n"
    "Without trust, only the ask and deny rules and the limits of its punchlist.toml apply, and nothing of its "
    "database is used. A changed file must be trusted again.",
    invoke_without_command=True,
)
key_app = typer.Typer(help="The key that signs your trust and your answers, for several machines on one database.")
app.add_typer(key_app, name="key")

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


@app.callback()
def trust(
    cli: CliContext,
    yes: YesOption = False,
    forget: Annotated[bool, typer.Option("--forget", help="Withdraw the trust.")] = False,
    new_database: Annotated[
        bool, typer.Option("--new-database", help="Set an untrusted database aside and start an empty one.")
    ] = False,
) -> None:
    if cli.invoked_subcommand not in (None, "list"):
        refuse_for_agents("trust")
    if cli.invoked_subcommand is not None:
        return
    refuse_for_agents("trust")
    services = cli.services()
    settings = _review_settings(cli, services, yes=yes, forget=forget)
    database = _review_database(cli, cli.services(), yes=yes, forget=forget, replace=new_database)
    instructions = _review_instructions(cli, cli.services(), yes=yes, forget=forget)
    text = [settings.pop("text"), *(found for part in (database, instructions) if (found := part.pop("text", "")))]
    cli.show({**settings, "database": database, **({"instructions": instructions} if instructions else {})}, text)


# --- the settings of the project ------------------------------------------------------------------------------


def _review_settings(cli: CliContext, services: Services, *, yes: bool, forget: bool) -> dict[str, Any]:
    from punchlist.agent import agents_config
    from punchlist.tools import settings as tools

    settings = services.settings
    file = settings.project
    asked = [
        visible(each)
        for each in (
            *settings.untrusted,
            *tools.requests_needing_trust(settings),
            *agents_config.untrusted_settings(settings),
        )
    ]
    # The content that was parsed above is the content that is trusted.
    contents: dict[Path, bytes] = {file.path: file.source} if file is not None else {}
    if asked:
        contents |= {prompt.path: prompt.content for prompt in agents_config.prompt_files(settings)}
    trusted = bool(contents) and all(services.trust.trusts(path, content) for path, content in contents.items())
    if file is not None and forget:
        for path in contents:
            services.trust.forget(path)
        trusted = False
    elif file is not None and asked and not trusted:
        if not cli.json or not yes:
            echo(f"{visible(file.path)} asks for:", error=True)
            echo("\n".join(f"  - {each}" for each in asked), error=True)
        _confirm(yes, "Trust it?")
        for path, content in contents.items():
            services.trust.trust(path, content)
        trusted = True
    text = "This project's settings contain nothing that needs trust."
    if file is not None and (asked or (forget and not trusted)):
        text = f"{visible(file.path)} is {'trusted' if trusted else 'not trusted'}."
    return {"file": str(file.path) if file else None, "asksFor": asked, "trusted": trusted, "text": text}


# --- the instructions of the project --------------------------------------------------------------------------


def _review_instructions(cli: CliContext, services: Services, *, yes: bool, forget: bool) -> dict[str, Any]:
    """Empty if the project has no instructions for agents."""
    from punchlist.agent.prompts import find_instructions

    file = find_instructions(services.workspace)
    if file is None:
        return {}
    if forget:
        services.trust.forget(file.path)
    elif not services.trust.trusts(file.path, file.content):
        if not cli.json or not yes:
            echo(f"{visible(file.path)} has instructions for agents:", error=True)
            echo("\n".join(f"  {line}" for line in file.text.splitlines()), error=True)
        _confirm(yes, "Give them to agents?")
        # The content that was displayed is the content that is trusted.
        services.trust.trust(file.path, file.content)
    word = "not trusted" if forget else "trusted"
    return {"file": str(file.path), "trusted": not forget, "text": f"{visible(file.path)} is {word}."}


# --- a database of another author -----------------------------------------------------------------------------


def _review_database(cli: CliContext, services: Services, *, yes: bool, forget: bool, replace: bool) -> dict[str, Any]:
    from punchlist.storage import trusted_files
    from punchlist.storage.adoption import inspect
    from punchlist.storage.open import parse_database_url

    if services.settings.refused_database is not None:
        return {"file": None, "trusted": False, "text": ""}
    file = parse_database_url(services.settings.database).file
    if file is None or not file.exists():
        return {"file": str(file) if file else None, "trusted": True, "text": ""}
    trusted_files.check_file(file)
    if forget:
        trusted_files.forget(file, services.trust)
        return {"file": str(file), "trusted": False, "text": f"{visible(file)} is not trusted."}
    own = trusted_files.is_adopted(file, services.trust)
    if own and not inspect(file).foreign:
        return {"file": str(file), "trusted": True, "text": f"{visible(file)} is your own database."}
    if replace:
        kept = _set_aside(file)
        return {"file": str(file), "trusted": True, "kept": str(kept), "text": _set_aside_text(file, kept)}
    content = _show_content(file, own=own, quiet=cli.json and yes)
    _confirm(yes, "Adopt it as your own?")
    adopt_database(file, content, services)
    return {"file": str(file), "trusted": True, "adopted": content.counts, "text": f"Adopted {visible(file)}."}


def _show_content(file: Path, *, own: bool = False, quiet: bool = False) -> DatabaseContent:
    from punchlist.storage.adoption import inspect

    content = inspect(file)
    if not quiet:
        origin = "was changed by another program" if own else "was not created by you"
        echo(f"{visible(file)} {origin}. It contains {visible(str(content))}.", error=True)
        for line in content.quoted():
            echo(line, error=True)
    return content


def adopt_database(file: Path, content: DatabaseContent, services: Services) -> None:
    """Make the file the user's own, and sign its event log with the user's key."""
    from punchlist.config import current_user
    from punchlist.kernel.events import Actor, Role
    from punchlist.storage.adoption import adopt
    from punchlist.storage.open import open_store
    from punchlist.storage.rechain import rechain

    adopt(file, content, services.trust)
    actor = Actor(Role.PERSON, current_user())
    with closing(open_store(str(file), trust=services.trust)) as store:
        rechain(store, services.trust.key, actor=str(actor), reason="The user adopted the database.")


def ask_about_database(services: Services, problem: UntrustedDatabase) -> bool:
    """Ask the person at the terminal about a database of another author; True if the command can continue."""
    if agent_evidence() is not None:
        return False
    content = _show_content(problem.file)
    echo("If it came with a repository, its lists and messages are those of the repository's author.", error=True)
    discard_typed_keys()
    answer = typer.prompt("[a]dopt it, start a [n]ew one, or [q]uit", default="q", err=True).strip().lower()[:1]
    if answer == "a":
        adopt_database(problem.file, content, services)
    elif answer == "n":
        echo(_set_aside_text(problem.file, _set_aside(problem.file)), error=True)
    return answer in ("a", "n")


def _set_aside(file: Path) -> Path:
    from punchlist.storage.adoption import set_aside

    return set_aside(file)


def _set_aside_text(file: Path, kept: Path) -> str:
    return f"{visible(file)} was renamed to {visible(kept.name)}. The next command that writes creates a new database."


# --- everything that is trusted -------------------------------------------------------------------------------


@app.command("list")
def list_trusted(cli: CliContext) -> None:
    """List everything that you have trusted, on this machine."""
    entries = cli.services().trust.entries()
    cli.show(
        [{"number": n, **_entry_json(entry)} for n, entry in enumerate(entries, 1)],
        [f"{n:>3}  {_description(entry)}  {_date(entry)}" for n, entry in enumerate(entries, 1)],
        empty="You have not trusted anything on this machine.",
    )


@app.command()
def revoke(
    cli: CliContext,
    entry: Annotated[str, typer.Argument(metavar="N|NAME", help="A number or a name that `trust list` shows.")],
) -> None:
    """Withdraw trust: the file, the mission or the database has to be trusted again."""
    trust = cli.services().trust
    entries = trust.entries()
    found = [
        each
        for number, each in enumerate(entries, 1)
        if entry in (str(number), each.name, _subject(each)) or Path(entry).absolute() == Path(_subject(each))
    ]
    if len(found) != 1:
        raise NotFound(f"`punchlist trust list` has no entry {excerpt(entry)!r}.")
    trust.forget_text(found[0].name)
    cli.show(_entry_json(found[0]), f"{visible(_subject(found[0]))} is no longer trusted.")


def _entry_json(entry: TrustEntry) -> dict[str, Any]:
    return {"kind": _kind(entry), "name": _subject(entry), "trustedAt": _date(entry)}


def _kind(entry: TrustEntry) -> str:
    return "settings" if entry.name.startswith("/") or ":" not in entry.name else entry.name.partition(":")[0]


def _subject(entry: TrustEntry) -> str:
    return entry.name if _kind(entry) == "settings" else entry.name.partition(":")[2]


def _description(entry: TrustEntry) -> str:
    if _kind(entry) == "todo-check":
        digest, _, folder = _subject(entry).partition("@")
        return f"check     command {digest[:8]} that you wrote, in {visible(folder)}"
    return f"{_kind(entry):<9} {visible(_subject(entry))}"


def _date(entry: TrustEntry) -> str:
    return f"{datetime.fromtimestamp(entry.at, UTC):%Y-%m-%d}"


# --- the key ----------------------------------------------------------------------------------------------------


@key_app.command("export")
def export_key(
    cli: CliContext,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The new file to write, readable only by you.")],
) -> None:
    """Write the signing key to a file, for a worker of yours on another machine."""
    import os

    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InvalidInput(f"{file} already exists. Name a new file; nothing was written.") from None
    with os.fdopen(descriptor, "w", encoding="ascii") as target:
        target.write(cli.services().trust.key.hex() + "\n")
    cli.show({"file": str(file)}, f"Wrote the key to {visible(file)}. Everyone who has it can answer in your name.")


@key_app.command("import")
def import_key(
    cli: CliContext,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `trust key export` wrote.")],
    yes: YesOption = False,
) -> None:
    """Use the signing key of another machine. What the key of this machine signed has to be trusted again."""
    from punchlist.trust import UnsafeFile, read_regular

    try:
        key = bytes.fromhex(read_regular(file, 200).decode("ascii").strip())
    except (OSError, UnsafeFile, ValueError) as error:
        raise InvalidInput(f"{file} is not a key that `punchlist trust key export` wrote ({error}).") from None
    trust = cli.services().trust
    _confirm(yes, f"Replace the key of this machine, which signed {len(trust.entries())} entries of `trust list`?")
    trust.replace_key(key)
    cli.show({"imported": True}, "This machine uses the imported key now.")


def _confirm(yes: bool, question: str) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise NotAllowed("There is no terminal to ask. Review it, then confirm with --yes.")
    confirm(question)
