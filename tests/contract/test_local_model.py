"""`local:FILE.gguf`: the child process and its wire for real, with a stand-in for the library that runs the model."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from punchlist.errors import ConfigError
from punchlist.models.local import LocalModel
from punchlist.models.model import (
    FinishReason,
    ModelBusy,
    ModelRefused,
    ModelRequest,
    Reply,
    RequestedCall,
    RequestRefused,
    ToolOffer,
    Usage,
    UserText,
)
from punchlist.models.provider_model import model_named

ROOT = Path(__file__).parents[2]
LOOK = ToolOffer("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}})
HELLO = ModelRequest("Be brief.", [UserText("Hello?")], [LOOK])
BOUND = 30.0

LIBRARY = """\
import json, os, sys, types
sys.path.insert(0, {root!r})
from tests.contract.scripted_http import ScriptedServer, read
from pathlib import Path

print("llama_model_loader: noise on stdout")
os.write(1, b"noise below Python\\n")
FOLDER = Path({folder!r})


class CommonParams:
    def __init__(self):
        self.model = types.SimpleNamespace(path="")
        self.cpuparams = types.SimpleNamespace(n_threads=-1)


class Server:
    def __init__(self, params):
        settings = {{**vars(params), "model": params.model.path, "cpuparams": params.cpuparams.n_threads}}
        with (FOLDER / "loaded").open("a") as loaded:
            loaded.write(json.dumps({{"pid": os.getpid(), **settings}}) + "\\n")
        if (FOLDER / "fails").exists():
            os.write(2, b"0.00.006.577 E llama_model_load: error loading model: unknown architecture\\n")
            os.write(2, b"0.00.006.755 E srv    load_model: failed to load model\\n")
            raise RuntimeError("Failed to init server, please check the input params.")
        if (FOLDER / "aborts").exists():
            os.abort()
        self.scripted = ScriptedServer(read(FOLDER / "script.json"))
        self.scripted.__enter__()
        self.listening_address = self.scripted.url
"""


def gguf(context: int | None = 4096, kind: int = 4) -> bytes:
    """The head of a model's file."""

    def value(name: str, kind: int, content: bytes) -> bytes:
        return struct.pack("<Q", len(name)) + name.encode() + struct.pack("<I", kind) + content

    architecture = value("general.architecture", 8, struct.pack("<Q", 4) + b"tiny")
    values = [architecture, value("general.quick", 7, b"\x01")]
    if context is not None:
        values.append(value("tiny.context_length", kind, struct.pack("<I" if kind == 4 else "<Q", context)))
    values.append(value("tokenizer.tokens", 9, struct.pack("<IQ", 8, 0)))
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(values)) + b"".join(values)


class Machine:
    """A machine with the library on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "tiny.gguf"
        self.file.write_bytes(gguf())
        (folder / "xllamacpp.py").write_text(LIBRARY.format(root=str(ROOT), folder=str(folder)))
        self.script({"text": "Hello."})

    def script(self, *answers: Mapping[str, Any]) -> None:
        (self.folder / "script.json").write_text(json.dumps(answers))

    def loaded(self) -> list[Mapping[str, Any]]:
        """What the library was asked to load, each time."""
        return [json.loads(line) for line in (self.folder / "loaded").read_text().splitlines()]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    return made


@pytest.fixture
def model(machine: Machine) -> Iterator[LocalModel]:
    made = model_named(f"local:{machine.file}", {})
    assert isinstance(made, LocalModel)
    yield made
    made.stop()


def replies(model: LocalModel, times: int = 1) -> Sequence[Reply]:
    async def ask() -> Sequence[Reply]:
        return [await asyncio.wait_for(model.ask(HELLO), BOUND) for _ in range(times)]

    return asyncio.run(ask())


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


# --- what is told before any work -------------------------------------------------------------------------


def test_a_file_that_is_not_there_is_told(machine: Machine) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.gguf: there is no such file\.$"):
        model_named(f"local:{machine.folder / 'nowhere.gguf'}", {})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is no GGUF file"),
        (b"PK\x03\x04 something else", "is no GGUF file"),
        (b"GGUF", "is a damaged GGUF file"),
        (gguf()[:60], "is a damaged GGUF file"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "is a damaged GGUF file"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**63), "is a damaged GGUF file"),
    ],
)
def test_a_file_that_is_no_model_is_told(machine: Machine, content: bytes, said: str) -> None:
    machine.file.write_bytes(content)
    with pytest.raises(ConfigError, match=rf"^{machine.file}: {said}\.$"):
        model_named(f"local:{machine.file}", {})


def test_a_library_that_is_missing_is_told_with_the_command_that_installs_it(tmp_path: Path) -> None:
    (tmp_path / "tiny.gguf").write_bytes(gguf())
    program = "import sys; sys.modules['xllamacpp'] = None; from punchlist.models.local import load_of; "
    program += f"load_of({str(tmp_path / 'tiny.gguf')!r}, {{}})"
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=BOUND)
    assert "xllamacpp, which is not installed: pip install 'punchlist[local]'" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("written", ["many", "0", "-1", "8192.5", "99999999999"])
def test_a_context_that_is_no_number_of_tokens_is_told(machine: Machine, written: str) -> None:
    with pytest.raises(ConfigError, match=r"^PUNCHLIST_LOCAL_CONTEXT: must be a number of tokens"):
        model_named(f"local:{machine.file}", {"PUNCHLIST_LOCAL_CONTEXT": written})


def test_a_template_that_cannot_be_read_is_told(machine: Machine) -> None:
    with pytest.raises(ConfigError, match=r"^PUNCHLIST_LOCAL_TEMPLATE: .*nowhere.* cannot be read"):
        model_named(f"local:{machine.file}", {"PUNCHLIST_LOCAL_TEMPLATE": "nowhere.jinja"})


# --- how it is loaded -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "environment", "window"),
    [
        (gguf(4096), {}, 4096),
        (gguf(131_072), {}, 8192),
        (gguf(131_072, kind=10), {}, 8192),
        (gguf(None), {}, 8192),
        (gguf(131_072), {"PUNCHLIST_LOCAL_CONTEXT": "32768"}, 32_768),
        (gguf(4096), {"PUNCHLIST_LOCAL_CONTEXT": "32768"}, 4096),
    ],
)
def test_the_window_is_what_is_wanted_up_to_what_the_model_was_made_for(
    machine: Machine, content: bytes, environment: Mapping[str, str], window: int
) -> None:
    machine.file.write_bytes(content)
    assert model_named(f"local:{machine.file}", environment).traits.window == window


def test_it_is_loaded_by_the_first_question_and_serves_all_of_them(machine: Machine, model: LocalModel) -> None:
    machine.script({"text": "I look.", "calls": [["look", {"at": "a"}]]}, {"text": "Seen."}, {"text": "Still here."})
    assert not (machine.folder / "loaded").exists()
    first, second = replies(model, 2)
    assert first == Reply(
        "I look.", (RequestedCall("call_1", "look", {"at": "a"}),), FinishReason.TOOL_CALLS, Usage(11, 7)
    )
    assert second.text == "Seen."
    # Another event loop, the same process.
    assert replies(model)[0].text == "Still here."
    (loaded,) = machine.loaded()
    assert (loaded["model"], loaded["n_ctx"]) == (str(machine.file), 4096)
    assert (loaded["hostnames"], loaded["port"]) == (["127.0.0.1"], 0)
    assert len(loaded["api_keys"][0]) >= 32
    assert 1 <= loaded["cpuparams"] <= (os.cpu_count() or 1)
    assert "chat_template" not in loaded


@pytest.mark.parametrize("own", [True, False])
def test_another_template_is_given_to_the_library(machine: Machine, own: bool) -> None:
    file = machine.folder / "own.jinja"
    file.write_text("{{ messages }}")
    model = LocalModel(str(machine.file), {"PUNCHLIST_LOCAL_TEMPLATE": str(file) if own else "fenced"})
    replies(model)
    model.stop()
    assert ("```json" in machine.loaded()[0]["chat_template"]) is not own


def test_questions_at_the_same_time_wait_for_one_process(machine: Machine, model: LocalModel) -> None:
    async def thrice() -> list[Reply]:
        return list(await asyncio.gather(*(model.ask(HELLO) for _ in range(3))))

    machine.script(*[{"text": "Yes."}] * 3)
    assert [reply.text for reply in asyncio.run(thrice())] == ["Yes."] * 3
    assert len(machine.loaded()) == 1


def test_a_question_given_up_while_the_model_loads_ends_at_once(machine: Machine, model: LocalModel) -> None:
    async def give_up() -> None:
        asking = asyncio.ensure_future(model.ask(HELLO))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(give_up())
    assert replies(model)[0].text == "Hello."
    assert len(machine.loaded()) == 1


# --- how it fails -----------------------------------------------------------------------------------------


def test_a_model_that_cannot_be_loaded_says_why(machine: Machine, model: LocalModel) -> None:
    (machine.folder / "fails").touch()
    with pytest.raises(ModelRefused, match=r"tiny\.gguf: cannot be loaded: error loading model: unknown architecture$"):
        replies(model)


def test_a_library_that_aborts_takes_nobody_with_it(machine: Machine, model: LocalModel) -> None:
    (machine.folder / "aborts").touch()
    with pytest.raises(ModelRefused, match=r"cannot be loaded: its process ended$"):
        replies(model)


def test_a_request_that_is_too_long_names_the_setting(machine: Machine, model: LocalModel) -> None:
    refusal = "request (12013 tokens) exceeds the available context size (4096 tokens), try increasing it"
    machine.script({"status": 400, "error": refusal})
    with pytest.raises(RequestRefused, match=r"takes \(4096 tokens, as PUNCHLIST_LOCAL_CONTEXT"):
        replies(model)


def test_a_process_that_is_killed_is_started_again_by_the_next_try(machine: Machine, model: LocalModel) -> None:
    machine.script({"text": "A long story", "broken": "hang"})

    async def asked_and_killed() -> None:
        heard = asyncio.Event()
        asking = asyncio.ensure_future(model.ask(HELLO, lambda _: heard.set()))
        await asyncio.wait_for(heard.wait(), BOUND)
        os.kill(machine.loaded()[0]["pid"], signal.SIGKILL)
        await asking

    with pytest.raises(ModelBusy, match=r"its process ended\.$"):
        asyncio.run(asked_and_killed())
    machine.script({"text": "Back."})
    assert replies(model)[0].text == "Back."
    assert len(machine.loaded()) == 2


# --- the program ------------------------------------------------------------------------------------------

ASKING = """\
import asyncio, os, signal, sys
from punchlist.models.provider_model import model_named
from punchlist.models.model import Request, Said
print(asyncio.run(model_named("local:" + sys.argv[1], {}).ask(Request("", [Said("Hello?")]))).text)
if sys.argv[2:]:
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("killed", [False, True])
def test_nothing_is_printed_and_nothing_is_left_behind(machine: Machine, killed: bool) -> None:
    command = [sys.executable, "-u", "-c", ASKING, str(machine.file), *(["killed"] if killed else [])]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=BOUND)
    assert (done.stdout, done.stderr, done.returncode) == ("Hello.\n", "", -signal.SIGKILL if killed else 0)
    pid = machine.loaded()[0]["pid"]
    asyncio.run(asyncio.wait_for(_until_gone(pid), BOUND))


async def _until_gone(pid: int) -> None:
    while not gone(pid):
        await asyncio.sleep(0.01)


def test_the_folder_one_works_in_is_not_searched_for_the_library(machine: Machine, tmp_path: Path) -> None:
    elsewhere = tmp_path / "project"
    elsewhere.mkdir()
    (elsewhere / "xllamacpp.py").write_text("raise SystemExit('a stranger\\'s code')")
    (elsewhere / "json.py").write_text("raise SystemExit('a stranger\\'s code')")
    command = [sys.executable, "-P", "-c", ASKING, str(machine.file)]
    done = subprocess.run(command, cwd=elsewhere, check=False, capture_output=True, text=True, timeout=BOUND)
    assert (done.stdout, done.stderr) == ("Hello.\n", "")
