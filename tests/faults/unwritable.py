"""Makes a database, makes its file system unwritable, runs commands, and prints what each did as JSON.

    python -m tests.faults.unwritable FOLDER read-only|full closed|killed

FOLDER is a small file system that this process may remount.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.contract.missions import SLUG, developer_experience
from tests.faults.script import Script

from punchlist.storage.trusted_files import sign
from punchlist.trust import Trust

COMMANDS = (
    ("todos", "--json"),
    ("log", "--json"),
    ("sessions", "show", "--json"),
    ("mission", "list", "--json"),
    ("mission", "show", SLUG, "--json"),
    ("inbox", "--json"),
    ("db", "check", "--json"),
    ("todos", "add", "More"),
)


def run(folder: Path, *arguments: str, input: str = "") -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-m", "punchlist", *arguments],
        cwd=folder,
        input=input,
        capture_output=True,
        text=True,
        check=False,
    )
    return {"code": done.returncode, "out": done.stdout, "err": done.stderr}


def prepare(folder: Path, ending: str) -> None:
    """In a process of its own, which ends in one of two ways."""
    if os.fork():
        os.wait()
        return
    file = folder / ".punchlist" / "punchlist.db"
    script = Script(f"sqlite:///{file}", "default")
    script.perform_all(8)
    developer_experience(script.house.store)
    if ending == "closed":
        script.close()
    # Without closing, the last changes are only in the log.
    os._exit(0)


def make_unwritable(disk: Path, how: str) -> None:
    if how == "read-only":
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        return
    with (disk / "ballast").open("wb", buffering=0) as ballast:
        try:
            while ballast.write(b"x" * 4096):
                pass
        except OSError:
            pass


def main(place: str, how: str, ending: str) -> None:
    disk = Path(place)
    folder = disk / "project"
    (folder / ".git").mkdir(parents=True)
    prepare(folder, ending)
    stored = folder / ".punchlist"
    (stored / "punchlist.db-shm").unlink(missing_ok=True)
    before = {file.name: file.read_bytes().hex() for file in sorted(stored.glob("punchlist.db*"))}
    make_unwritable(disk, how)
    told: dict[str, dict[str, object]] = {" ".join(command): run(folder, *command) for command in COMMANDS}
    payload = {"session_id": "s1", "cwd": str(folder), "stop_hook_active": False}
    for event in ("stop", "prompt", "session-start"):
        told[f"hook {event}"] = run(
            folder, "hook", event, "--for", "codex", input=json.dumps({**payload, "prompt": "Do it."})
        )
    after = {file.name: file.read_bytes().hex() for file in sorted(stored.glob("punchlist.db*"))}
    told["unchanged"] = {"code": int(all(after.get(name) == content for name, content in before.items()))}
    told["log"] = {"size": (stored / "punchlist.db-wal").stat().st_size if ending == "killed" else 0}
    with tempfile.TemporaryDirectory() as elsewhere:
        copy = Path(elsewhere) / "project"
        shutil.copytree(folder, copy)
        sign(copy / ".punchlist" / "punchlist.db", Trust.of_user(os.environ))
        told["copy"] = {" ".join(command): run(copy, *command)["out"] for command in COMMANDS[:6]}
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
