"""Collectors that hang, flood, lie or reach out: limits are kept, walls hold, nothing is left (trust test 28)."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.faults.tools import gone, running

from punchlist.missions.metrics import collectors
from punchlist.missions.metrics.collectors import CollectorError, collect
from punchlist.missions.metrics.http_fetch import is_public
from punchlist.missions.model import Metric

pytestmark = pytest.mark.spec("M7")

_numbers = count(1)
SECRET = "correct-horse-battery"


def metric(how: Mapping[str, Any]) -> Metric:
    return Metric(
        *("m", "mission", "pillar", "build-time", "Build time", "s", 60.0, None, "down", json.dumps(how)),
        *(24.0, 0, "active", None, None, "2026-02-21T09:00:00.000000Z"),
    )


class Site:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.environment = {**os.environ, "DEPLOY_TOKEN": SECRET, "PIN_SECRET": "1234"}

    def collect(self, *, trusted: bool = True, allow_private: bool = False, **how: Any) -> float:
        return collect(
            metric(how),
            mission_slug="fast",
            workspace=self.root,
            trusted=trusted,
            environment=self.environment,
            allow_private=allow_private,
        )

    def fails(self, **how: Any) -> str:
        with pytest.raises(CollectorError) as failed:
            self.collect(**how)
        return str(failed.value)

    def shell(self, line: str, **how: Any) -> dict[str, Any]:
        return {"type": "command", "command": ["sh", "-c", line], **how}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    root = tmp_path / "work"
    root.mkdir()
    return Site(root)


@pytest.fixture
def long() -> Iterator[str]:
    """How long to sleep so that it is known afterwards whose sleep it is."""
    seconds = f"8{os.getpid()}.{next(_numbers):06}"
    yield seconds
    for pid in running(seconds):
        os.kill(pid, 9)


# --- commands -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("printed", "pattern", "value"),
    [
        ("72", None, 72),
        (r" 72.5 \n", None, 72.5),
        (r"took 72.5 s\n", r"took ([0-9.]+) s", 72.5),
        (r"a: 1\nb: 2\n", r"^b: (\d+)$", 2),
        ("-1e3", None, -1000),
    ],
)
def test_a_command_prints_a_number(site: Site, printed: str, pattern: str | None, value: float) -> None:
    how = {"pattern": pattern} if pattern else {}
    assert site.collect(**site.shell(f"printf -- '{printed}'", **how)) == value


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("echo fast", "'fast' is not a number"),
        ("echo NaN", "'NaN' is not a number"),
        ("echo inf", "'inf' is not a number"),
        ("echo 1e999", "inf is not a finite number"),
        ("true", "the output is empty; a number was expected"),
        ("echo 72 73", "'72 73' is not a number"),
        (r"printf '\033[31m72'", r"'\\x1b[31m72' is not a number"),
        (r"printf '\377'", "is not a number"),
        ("echo working; echo one >&2; echo the disk is full >&2; echo >&2; exit 3", "exit code 3: the disk is full"),
        ("kill -9 $$", "killed by signal 9"),
    ],
)
def test_what_a_command_does_instead_is_told(site: Site, line: str, told: str) -> None:
    assert told in site.fails(**site.shell(line))


def test_a_command_that_is_not_there_is_told(site: Site) -> None:
    assert "'no-such-program' cannot be started: No such file" in site.fails(
        type="command", command=["no-such-program"]
    )


def test_no_shell_is_between(site: Site) -> None:
    assert "is not a number" in site.fails(type="command", command=["echo", "1; touch x", "$(touch y)", "`touch z`"])
    assert list(site.root.iterdir()) == []


def test_a_command_runs_in_the_workspace(site: Site) -> None:
    (site.root / "count").write_text("12")
    assert site.collect(type="command", command=["cat", "count"]) == 12


CHILDREN = {
    "itself": "exec sleep LONG",
    "a child": "sleep LONG; true",
    "in the background": "sleep LONG & echo 1; wait",
    "a session of its own": "setsid sleep LONG & wait",
    "deaf": "trap '' TERM; sleep LONG; sleep LONG",
}


@pytest.mark.parametrize("line", CHILDREN.values(), ids=CHILDREN.keys())
def test_a_command_that_hangs_is_ended_with_all_its_children(site: Site, long: str, line: str) -> None:
    begun = time.monotonic()
    told = site.fails(**site.shell(line.replace("LONG", long), timeoutSeconds=0.3))
    assert "exceeded its time limit of 0.3 s and was killed" in told
    assert time.monotonic() - begun < 20
    assert gone(long, 0)


def test_what_a_command_leaves_behind_is_ended(site: Site, long: str) -> None:
    line = f"setsid sleep {long} >/dev/null 2>&1 & sleep {long} & echo 5"
    assert site.collect(**site.shell(line)) == 5
    assert gone(long, 0)


@pytest.mark.parametrize("stream", ["1", "2"])
def test_a_command_that_prints_without_end_is_ended(site: Site, stream: str) -> None:
    begun = time.monotonic()
    told = site.fails(**site.shell(f"yes >&{stream}", timeoutSeconds=2))
    assert ("more than 64 KB" if stream == "1" else "exceeded its time limit") in told
    assert time.monotonic() - begun < 20


def test_a_pattern_without_end_is_ended(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collectors, "MATCH_TIMEOUT", 0.5)
    (site.root / "text").write_text("a" * 40 + "b")
    begun = time.monotonic()
    told = site.fails(trusted=False, type="file", path="text", pattern="^(a+)+$")
    assert "the pattern took longer than 0.5 s" in told
    assert time.monotonic() - begun < 20


def test_a_pattern_that_finds_nothing_says_where_it_looked(site: Site) -> None:
    assert "was not found in 'took 3 s'" in site.fails(**site.shell("echo took 3 s", pattern="took ([0-9]+) minutes"))


def test_secrets_are_not_in_the_environment(site: Site) -> None:
    line = 'printf "%s" "${DEPLOY_TOKEN:-}${PIN_SECRET:-}" | wc -c'
    assert site.collect(**site.shell(line)) == 0
    function = "import os; print(len(os.environ.get('DEPLOY_TOKEN', '')))"
    assert site.collect(type="command", command=[sys.executable, "-c", function]) == 0


def test_secrets_are_not_in_what_is_told(site: Site) -> None:
    told = site.fails(**site.shell(f"echo cannot log in with {SECRET} >&2; exit 1"))
    assert "cannot log in with" in told
    assert SECRET not in told
    (site.root / "leak").write_text(SECRET)
    assert SECRET not in site.fails(type="file", path="leak")


@pytest.mark.parametrize(
    "how",
    [
        {"type": "command", "command": ["touch", "was-run"]},
        {"type": "http", "url": "http://127.0.0.1:1/", "pointer": ""},
        {"type": "python", "entryPoint": "os:getpid"},
    ],
)
def test_what_is_not_trusted_does_not_run(site: Site, how: dict[str, Any]) -> None:
    told = site.fails(trusted=False, **how)
    assert "`punchlist mission trust fast`" in told
    assert list(site.root.iterdir()) == []


def test_what_is_recorded_by_hand_says_so(site: Site) -> None:
    assert "`punchlist mission metric record fast build-time VALUE`" in site.fails(type="manual")


# --- files --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "how", "value"),
    [
        ("7.5\n", {}, 7.5),
        ('{"a": {"b/c": [1, {"~d": 72}]}}', {"pointer": "/a/b~1c/1/~0d"}, 72),
        ('{"value": "72.5"}', {"pointer": "/value"}, 72.5),
        ("72", {"pointer": ""}, 72),
        ("lines: 120", {"pattern": r"lines: (\d+)"}, 120),
    ],
)
def test_a_file_holds_a_number_without_any_trust(site: Site, content: str, how: dict[str, Any], value: float) -> None:
    (site.root / "sub").mkdir()
    (site.root / "sub" / "value").write_text(content)
    assert site.collect(trusted=False, type="file", path="sub/value", **how) == value


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "is not JSON"),
        ('{"b": 1}', "there is no 'a'"),
        ('{"a": true}', "/a is a boolean, not a number"),
        ('{"a": null}', "/a is null, not a number"),
        ('{"a": {}}', "/a is an object, not a number"),
        ('{"a": NaN}', "nan is not a finite number"),
        ('{"a": 1e999}', "inf is not a finite number"),
        ('{"a": ' + "9" * 400 + "}", "must be a number from"),
        ('{"a": ' + "9" * 5000 + "}", "is not JSON"),
        ('{"a": "fast"}', "'fast' is not a number"),
        ("[" * 100_000, "is not JSON"),
        ("[1, 2]", "there is no 'a'"),
    ],
)
def test_what_a_file_says_instead_is_told(site: Site, content: str, told: str) -> None:
    (site.root / "value.json").write_text(content)
    assert told in site.fails(type="file", path="value.json", pointer="/a")


def test_a_file_outside_is_not_read(site: Site, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("42")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "secret").write_text("42")
    (site.root / "link").symlink_to(tmp_path / "secret")
    (site.root / "far").symlink_to("../secret")
    (site.root / "into").symlink_to(tmp_path / "folder")
    paths = (
        "../secret",
        str(tmp_path / "secret"),
        "link",
        "far",
        "into/secret",
        "x/../../secret",
        ".",
        "",
        "/etc/hostname",
    )
    for path in paths:
        assert "is outside the workspace" in site.fails(type="file", path=path), path
    assert "is not a path" in site.fails(type="file", path="a\0b")


def test_a_link_inside_is_followed(site: Site) -> None:
    (site.root / "value").write_text("42")
    (site.root / "link").symlink_to("value")
    assert site.collect(type="file", path="link") == 42


def test_a_link_put_there_after_the_look_is_not_followed(site: Site, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("42")
    (site.root / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(OSError, match="Too many levels"):
        collectors._open_without_links(site.root, site.root / "link")
    (site.root / "folder").symlink_to(tmp_path)
    with pytest.raises(OSError, match="Not a directory"):
        collectors._open_without_links(site.root, site.root / "folder" / "secret")


def test_what_is_no_file_is_told_at_once(site: Site) -> None:
    os.mkfifo(site.root / "pipe")
    (site.root / "folder").mkdir()
    (site.root / "large").write_bytes(b"1" * (1024 * 1024 + 1))
    assert "is not a regular file" in site.fails(type="file", path="pipe")
    assert "is not a regular file" in site.fails(type="file", path="folder")
    assert "larger than 1024 KB" in site.fails(type="file", path="large")
    assert "No such file" in site.fails(type="file", path="none")


# --- Python -------------------------------------------------------------------------------------------------------

MODULE = """
import sys, time
print("loaded")
def good(): print("not the result"); return 72.5
def text(): return "72"
def nan(): return float("nan")
def yes(): return True
def nothing(): pass
def bad(): raise ValueError("the moon is full")
def leave(): sys.exit(3)
def hang(): time.sleep(1000)
class Inner:
    @staticmethod
    def value(): return 5
number = 7
"""


@pytest.fixture
def package(site: Site, tmp_path: Path) -> Site:
    """With a module that is installed, as far as Python can tell, and an entry point."""
    installed = tmp_path / "installed"
    (installed / "measures-1.0.dist-info").mkdir(parents=True)
    (installed / "measures.py").write_text(MODULE)
    (installed / "measures-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: measures\nVersion: 1.0\n"
    )
    (installed / "measures-1.0.dist-info" / "entry_points.txt").write_text(
        "[punchlist.collectors]\nmeasured = measures:good\n"
    )
    site.environment["PYTHONPATH"] = str(installed)
    return site


@pytest.mark.parametrize(("name", "value"), [("measures:good", 72.5), ("measures:Inner.value", 5), ("measured", 72.5)])
def test_a_function_returns_a_number(package: Site, name: str, value: float) -> None:
    assert package.collect(type="python", entryPoint=name) == value


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("text", "it returned '72', which is not a number"),
        ("nan", "returned nan, which is not a finite number"),
        ("yes", "it returned True, which is not a number"),
        ("nothing", "it returned None, which is not a number"),
        ("bad", "ValueError: the moon is full"),
        ("leave", "it exited (3)"),
        ("number", "measures:number is not a function"),
        ("none", "has no attribute 'none'"),
    ],
)
def test_what_a_function_does_instead_is_told(package: Site, name: str, told: str) -> None:
    assert told in package.fails(type="python", entryPoint=f"measures:{name}")


def test_a_function_that_hangs_is_ended(package: Site) -> None:
    assert "exceeded its time limit" in package.fails(type="python", entryPoint="measures:hang", timeoutSeconds=0.5)


def test_a_module_that_lies_in_the_workspace_is_none(site: Site) -> None:
    (site.root / "planted.py").write_text("def value(): open('was-run', 'w'); return 1")
    assert "No module named 'planted'" in site.fails(type="python", entryPoint="planted:value")
    assert not (site.root / "was-run").exists()
    assert "no installed package has an entry point 'nobody'" in site.fails(type="python", entryPoint="nobody")


# --- the web ------------------------------------------------------------------------------------------------------


class Web:
    """A server on this machine that answers as it is told to."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.released = threading.Event()
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                web.asked.append((self.path, dict(self.headers)))
                if self.path == "/hang":
                    web.released.wait(60)
                    return
                if self.path == "/trickle":
                    while not web.released.wait(0.02):
                        self.wfile.write(b"x")
                    return
                status, headers, content = web.answers.get(self.path, (404, {}, b""))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self) -> None:
        self.released.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def web() -> Iterator[Web]:
    started = Web()
    yield started
    started.close()


def test_a_web_address_is_asked_for_a_number(site: Site, web: Web) -> None:
    web.answers["/api?x=1"] = (200, {}, b'{"data": [{"value": 72.5}]}')
    value = site.collect(
        allow_private=True,
        type="http",
        url=f"{web.url}/api?x=1",
        pointer="/data/0/value",
        headers={"Authorization": "Bearer ${DEPLOY_TOKEN}"},
    )
    assert value == 72.5
    [(_, headers)] = web.asked
    assert headers["Authorization"] == f"Bearer {SECRET}"
    assert headers["Host"] == f"127.0.0.1:{web.port}"


PRIVATE = [
    *("127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "localhost", "0.0.0.0", "0"),
    *("10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "192.0.2.1", "198.18.0.1"),
    *("224.0.0.1", "240.0.0.1", "255.255.255.255", "[::1]", "[::]", "[fe80::1]", "[fc00::1]", "[fec0::1]"),
    *("[::ffff:127.0.0.1]", "[::ffff:a9fe:a9fe]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]"),
    *("[ff02::1]", "[2001:db8::1]", "[2001:0:7f00:1::]"),
]


@pytest.mark.parametrize("host", PRIVATE)
def test_a_private_address_is_not_asked(site: Site, web: Web, host: str) -> None:
    told = site.fails(type="http", url=f"http://{host}:{web.port}/", pointer="")
    assert "an address of this machine or of a private network" in told
    assert web.asked == []


@pytest.mark.parametrize("address", ["1.1.1.1", "2606:4700:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"])
def test_an_address_of_the_internet_may_be_asked(address: str) -> None:
    assert is_public(address)


def test_a_name_that_means_something_else_the_second_time_leads_nowhere(
    site: Site, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter(["203.0.113.1", "93.184.215.14", "127.0.0.1"])
    reached: list[Any] = []

    def look_up(host: str, port: int, **_: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), port))]

    def reach(address: Any, **_: Any) -> socket.socket:
        reached.append(address)
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(socket, "create_connection", reach)
    how = {"type": "http", "url": f"http://rebinding.example:{web.port}/", "pointer": ""}
    # An address of the documentation is none of the internet's either.
    assert "private network" in site.fails(**how)
    assert "cannot be reached: Connection refused" in site.fails(**how)
    assert reached == [("93.184.215.14", web.port)]
    assert "is 127.0.0.1" in site.fails(**how)


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://x/", "gopher://x/", "http://", "//x/", "x", "http://a b/", "http://x:99999/"]
)
def test_what_is_no_web_address_is_refused(site: Site, url: str) -> None:
    assert "is not a web address" in site.fails(allow_private=True, type="http", url=url, pointer="")


def test_a_password_in_an_address_is_refused_and_not_told(site: Site) -> None:
    told = site.fails(allow_private=True, type="http", url="http://me:hunter2hunter2@127.0.0.1/", pointer="")
    assert "contains a user name or password" in told
    assert "hunter2" not in told


def test_redirects_stay_with_the_host(site: Site, web: Web) -> None:
    how: dict[str, Any] = {
        "type": "http",
        "pointer": "",
        "allow_private": True,
        "headers": {"X-Key": "${DEPLOY_TOKEN}"},
    }
    web.answers["/good"] = (302, {"Location": "/value"}, b"")
    web.answers["/value"] = (200, {}, b"5")
    assert site.collect(url=f"{web.url}/good", **how) == 5
    other = Web()
    try:
        places = [
            f"{other.url}/value",
            f"http://localhost:{web.port}/value",
            f"https://127.0.0.1:{other.port}/",
            "//localhost/value",
        ]
        for place in places:
            web.answers["/away"] = (302, {"Location": place}, b"")
            assert "which is not followed" in site.fails(url=f"{web.url}/away", **how), place
        web.answers["/away"] = (302, {"Location": "file:///etc/passwd"}, b"")
        assert "is not a web address" in site.fails(url=f"{web.url}/away", **how)
        assert other.asked == []
    finally:
        other.close()
    web.answers["/round"] = (302, {"Location": "/round"}, b"")
    assert "redirected more than 3 times" in site.fails(url=f"{web.url}/round", **how)


@pytest.mark.parametrize("path", ["/hang", "/trickle"])
def test_a_server_that_hangs_or_trickles_is_left(site: Site, web: Web, path: str) -> None:
    begun = time.monotonic()
    told = site.fails(allow_private=True, type="http", url=f"{web.url}{path}", pointer="", timeoutSeconds=0.3)
    assert "exceeded its time limit of 0.3 s" in told
    assert time.monotonic() - begun < 20


def test_what_is_to_be_encrypted_is_not_sent_in_the_clear(site: Site, web: Web) -> None:
    how: dict[str, Any] = {
        "type": "http",
        "pointer": "",
        "allow_private": True,
        "headers": {"X-Key": "${DEPLOY_TOKEN}"},
    }
    told = site.fails(url=f"https://127.0.0.1:{web.port}/", **how)
    assert "cannot be reached" in told
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"https://127.0.0.1:{silent.getsockname()[1]}/"
        told = site.fails(url=address, timeoutSeconds=0.3, **how)
    assert "exceeded its time limit" in told
    assert web.asked == []


def test_a_large_answer_is_not_read_to_its_end(site: Site, web: Web) -> None:
    web.answers["/large"] = (200, {}, b"1" * (2 * 1024 * 1024))
    assert "more than 1,048,576 bytes" in site.fails(
        allow_private=True, type="http", url=f"{web.url}/large", pointer=""
    )


def test_what_a_server_says_instead_is_told_without_keys(site: Site, web: Web) -> None:
    how: dict[str, Any] = {
        "type": "http",
        "pointer": "/a",
        "allow_private": True,
        "headers": {"X-Key": "${DEPLOY_TOKEN}"},
    }
    told = site.fails(url=f"{web.url}/none?key=open-sesame-now", **how)
    assert "answered 404 Not Found" in told
    assert "open-sesame" not in told
    web.answers["/echo"] = (200, {}, f'{{"a": "{SECRET}"}}'.encode())
    assert SECRET not in site.fails(url=f"{web.url}/echo", **how)
    web.answers["/text"] = (200, {}, b"<html>")
    assert "the content is not JSON: '<html>'" in site.fails(url=f"{web.url}/text", **how)
    site.environment["DEPLOY_TOKEN"] = f"{SECRET}\r\nX-Evil: 1"
    told = site.fails(url=f"{web.url}/echo", **how)
    assert "contains invalid characters" in told
    assert SECRET not in told
    how["headers"] = {"X-Key": "${NOT_SET}"}
    assert "needs the environment variable NOT_SET, which is not set" in site.fails(url=f"{web.url}/echo", **how)
