"""`deploy/`: its files are well formed, name what exists, and their commands run (X12)."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.faults.processes import eventually
from tests.postgres import Databases

from punchlist.surfaces.cli.serve import DEFAULT_PORT

ROOT = Path(__file__).parent.parent.parent
DEPLOY = ROOT / "deploy"
SECRET = "a-password"
REQUIRED = {"POSTGRES_PASSWORD": SECRET, "PUBLIC_URL": "https://punchlist.example"}
GIVEN = {**REQUIRED, "OPENAI_API_KEY": "for no request"}
INSTRUCTIONS = {
    "FROM", "RUN", "WORKDIR", "COPY", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD", "ENV", "ARG",
}  # fmt: skip
SERVICE_KEYS = {
    "image", "build", "environment", "volumes", "ports", "healthcheck", "network_mode", "command", "depends_on",
    "restart", "deploy",
}  # fmt: skip
pytestmark = pytest.mark.spec("X12")


def instructions() -> list[tuple[str, str]]:
    """Of the Dockerfile, with continued lines joined."""
    text = re.sub(r"\\\n\s*", "", (DEPLOY / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in lines)]


def arguments(name: str) -> list[str]:
    return [rest for found, rest in instructions() if found == name]


def compose(given: dict[str, str] = GIVEN) -> dict[str, Any]:
    """The compose file as the engine reads it: variables replaced, those with `:?` required."""

    def replace(found: re.Match[str]) -> str:
        name, required, default = found[1], found[2] == ":?", found[3] or ""
        assert name in given or not required, f"{name} is required"
        return given.get(name, default)

    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: filled(each) for name, each in value.items()}
        if isinstance(value, list):
            return [filled(each) for each in value]
        return re.sub(r"\$\{(\w+)(:[?-])?([^}]*)\}", replace, value) if isinstance(value, str) else value

    loaded: dict[str, Any] = filled(yaml.safe_load((DEPLOY / "compose.yaml").read_text()))
    return loaded


def health_code() -> str:
    """What the image's health check runs in Python."""
    [check] = arguments("HEALTHCHECK")
    program, option, code = json.loads(check[check.index("[") :])
    assert (program, option) == ("python", "-c")
    return str(code)


# --- the files --------------------------------------------------------------------------------------------


def test_the_dockerfile_names_what_exists_and_does_not_run_as_root() -> None:
    names = [name for name, _ in instructions()]
    assert names[0] == "FROM"
    assert set(names) <= INSTRUCTIONS
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for copied in arguments("COPY"):
        *sources, target = [word for word in shlex.split(copied) if not word.startswith("--")]
        assert all((ROOT / source).exists() for source in sources), copied
        assert target
    [extras] = re.findall(r"\.\[([\w,]+)\]", " ".join(arguments("RUN")))
    assert set(extras.split(",")) <= set(pyproject["project"]["optional-dependencies"])
    assert {"missions", "postgres"} <= set(extras.split(","))
    [image] = arguments("FROM")
    version = re.fullmatch(r"python:(\d+)\.(\d+)-slim", image)
    assert version is not None
    assert (int(version[1]), int(version[2])) >= (3, 11), pyproject["project"]["requires-python"]
    [user] = arguments("USER")
    assert int(user) > 0
    assert f"--uid {user}" in " ".join(arguments("RUN"))
    assert names.index("USER") < names.index("ENTRYPOINT")
    assert all(path.startswith("/") for path in arguments("WORKDIR") + arguments("VOLUME"))
    assert arguments("EXPOSE") == [str(DEFAULT_PORT)]
    # As lists, so that signals reach the program and no shell.
    [entry], [command] = arguments("ENTRYPOINT"), arguments("CMD")
    assert json.loads(entry) == [*pyproject["project"]["scripts"]]
    assert json.loads(command)[0] == "serve"
    assert f":{DEFAULT_PORT}/readyz" in health_code()
    compile(health_code(), "healthcheck", "exec")


def test_the_compose_file_is_complete() -> None:
    loaded = compose()
    assert set(loaded) == {"services", "volumes"}
    services = loaded["services"]
    for name, service in services.items():
        assert set(service) <= SERVICE_KEYS, name
        assert ("image" in service) != ("build" in service), name
        if build := service.get("build"):
            context = (DEPLOY / build["context"]).resolve()
            assert context == ROOT
            assert (context / build["dockerfile"]).is_file()
        for volume in service.get("volumes", ()):
            source, _, target = volume.partition(":")
            assert source in loaded["volumes"], volume
            assert target.startswith("/")
        for other, terms in service.get("depends_on", {}).items():
            assert terms["condition"] == "service_healthy"
            assert "test" in services[other]["healthcheck"]
    assert services["database"]["image"].startswith("postgres:")
    assert all(port.startswith("127.0.0.1:") for port in services["database"]["ports"])
    # Server and workers share the key that signs tokens and answers.
    assert services["serve"]["volumes"] == services["worker"]["volumes"] == ["home:/home/punchlist"]
    assert services["serve"]["environment"] == services["worker"]["environment"]
    url = services["serve"]["environment"]["PUNCHLIST_DATABASE_URL"]
    given = services["database"]["environment"]
    assert url == f"postgresql://{given['POSTGRES_USER']}:{SECRET}@127.0.0.1:5432/{given['POSTGRES_USER']}"
    assert services["worker"]["deploy"]["replicas"] >= 2


@pytest.mark.parametrize("missing", sorted(REQUIRED))
def test_the_compose_file_says_what_must_be_set(missing: str) -> None:
    with pytest.raises(AssertionError, match=missing):
        compose({name: value for name, value in GIVEN.items() if name != missing})


def test_the_systemd_unit_is_valid(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    # The unit of a person whose home has the program and the project.
    home = tmp_path / "home"
    executable = home / ".local/bin/punchlist"
    executable.parent.mkdir(parents=True)
    executable.write_text("#!/bin/sh\n")
    executable.chmod(0o755)
    (home / "project").mkdir()
    unit = tmp_path / "punchlist.service"
    environment = {"HOME": str(home), "XDG_RUNTIME_DIR": str(tmp_path), "PATH": "/usr/bin:/bin"}

    def verify(text: str) -> tuple[int, str]:
        unit.write_text(text)
        told = subprocess.run(
            [program, "--user", "verify", "--man=no", str(unit)],
            env=environment, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        return told.returncode, told.stderr

    text = (DEPLOY / "punchlist.service").read_text()
    code, problems = verify(text)
    assert (code, "punchlist.service" in problems) == (0, False), problems
    # The check finds what is wrong.
    assert "punchlist.service" in verify(text.replace("Restart=", "Restarts="))[1]
    assert "serve" in text.split("ExecStart=")[1].splitlines()[0]


# --- their commands ---------------------------------------------------------------------------------------


@pytest.fixture
def deployed(databases: Databases, project: Path, environment: dict[str, str]) -> Any:
    """Start a service of the compose file without an engine, on a database of this machine."""
    url = databases.create()
    started: list[subprocess.Popen[str]] = []

    def start(service: str, *more: str) -> subprocess.Popen[str]:
        found = compose()["services"][service]
        values = {name: str(value) for name, value in found["environment"].items()}
        process = subprocess.Popen(
            [sys.executable, "-m", "punchlist", *found["command"], *more],
            cwd=project,
            env={**environment, **values, "PUNCHLIST_DATABASE_URL": url},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=30)
    databases.drop(url)


def lines_until(process: subprocess.Popen[str], text: str) -> str:
    assert process.stdout is not None
    read = ""
    for line in process.stdout:
        read += line
        if text in line:
            return read
    raise AssertionError(read)


def test_the_services_start_are_healthy_and_stop_at_a_signal(deployed: Any) -> None:
    server = deployed("serve", "--port", "0")
    said = lines_until(server, "/login?code=")
    assert f"{GIVEN['PUBLIC_URL']}/login?code=" in said
    port = _port(server.pid)
    code = health_code().replace(f":{DEFAULT_PORT}/", f":{port}/")

    def healthy() -> bool:
        return (
            subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30, check=False).returncode == 0
        )

    eventually(healthy, "the health check of the image")
    worker = deployed("worker")
    lines_until(worker, "orker")
    for process in (worker, server):
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert not healthy()


def _port(pid: int) -> int:
    """Where the process listens."""
    sockets = {link.readlink().name for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()}
    inodes = {found[1] for each in sockets if (found := re.fullmatch(r"socket:\[(\d+)\]", each))}
    for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and fields[9] in inodes:
            return int(fields[1].rpartition(":")[2], 16)
    raise AssertionError("it listens nowhere")
