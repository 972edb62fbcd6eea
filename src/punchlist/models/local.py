"""`local:FILE.gguf`: a model that runs on this machine, in a child process of ours, by xllamacpp.

The child is started by the first question and is gone when we are. It is a process of its own because the
library is native code: what it prints does not reach our stdout, and where it aborts, a model has failed and
a turn ends with a reason. We talk to it as to any other server that speaks OpenAI's wire, with a key that
only the two know.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import re
import secrets
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Final

from punchlist.errors import ConfigError
from punchlist.kernel.text import excerpt
from punchlist.models.gguf import trained_context
from punchlist.models.model import ModelBusy, ModelInfo, ModelRefused, ModelRequest, Reply, RequestRefused, TextListener
from punchlist.models.provider_model import ProviderModel
from punchlist.models.providers import LOCAL, ResolvedModel

LIBRARY: Final = "xllamacpp"
CONTEXT: Final = "PUNCHLIST_LOCAL_CONTEXT"
TEMPLATE: Final = "PUNCHLIST_LOCAL_TEMPLATE"
FENCED: Final = "fenced"
_USUAL_CONTEXT: Final = 8192
_LEAST_CONTEXT: Final = 512
_GOING: Final = 0.5
_LARGEST_TEMPLATE: Final = 1_000_000
_LOG_LINE: Final = re.compile(r"[\d.]+ E (?:\S+ +)?\w+ *: (.+)")


@dataclass(frozen=True, slots=True)
class Load:
    """What the child is told to load."""

    path: Path
    context: int
    template: str | None


def load_of(file: str, environment: Mapping[str, str]) -> Load:
    """Raises `ConfigError` for whatever can be known to fail before anything is started."""
    path = Path(file).expanduser()
    if not path.is_file():
        raise ConfigError(f"{path}: there is no such file.")
    trained = trained_context(path)
    if find_spec(LIBRARY) is None:
        raise ConfigError(f"local:FILE needs {LIBRARY}, which is not installed: pip install 'punchlist[local]'")
    context = _wanted_context(environment)
    return Load(path.resolve(), min(trained or context, context), _template(environment))


def _wanted_context(environment: Mapping[str, str]) -> int:
    written = (environment.get(CONTEXT) or str(_USUAL_CONTEXT)).strip()
    if not written.isdecimal() or not _LEAST_CONTEXT <= int(written) <= 2**31 - 1:
        raise ConfigError(f"{CONTEXT}: must be a number of tokens from {_LEAST_CONTEXT} on, got {excerpt(written)!r}.")
    return int(written)


def _template(environment: Mapping[str, str]) -> str | None:
    """None: the one that stands in the model's own file."""
    named = (environment.get(TEMPLATE) or "").strip()
    if not named:
        return None
    path = Path(__file__).with_name("fenced.jinja") if named == FENCED else Path(named).expanduser()
    try:
        if path.stat().st_size > _LARGEST_TEMPLATE:
            raise ConfigError(f"{TEMPLATE}: {path} is larger than {_LARGEST_TEMPLATE:,} bytes; that is no template.")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{TEMPLATE}: {path} cannot be read ({error}). Or say {FENCED}.") from None


class Child:
    """The process. Its address is a future: any number of questions, of any event loop, may wait for it."""

    def __init__(self, load: Load) -> None:
        self.key = secrets.token_urlsafe(24)
        self.address: Future[str] = Future()
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  it is the child's for as long as that lives
        # -P: the folder we work in is not searched for modules. The key is not for the list of processes.
        command = [sys.executable, "-P", "-m", "punchlist.models.local_server"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True, encoding="utf-8"
        )
        told = {"path": str(load.path), "context": load.context, "key": self.key, "template": load.template}
        self._beginning = threading.Thread(target=self._begin, args=(told,), daemon=True)
        self._beginning.start()
        atexit.register(self.stop)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ended(self) -> bool:
        """Whether it is gone, or just going: its connections break a moment before."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_GOING)
        return not self.alive

    def _begin(self, told: Mapping[str, Any]) -> None:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(told) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
            answer = json.loads(line) if line else {"failed": "its process ended"}
        except (OSError, ValueError) as error:
            answer = {"failed": str(error)}
        if "url" in answer:
            self.address.set_result(answer["url"])
        else:
            self.address.set_exception(ModelRefused(self.last_words() or str(answer["failed"])))

    def last_words(self) -> str:
        """The first error of its log, which is the cause of those after it."""
        self._log.seek(0)
        lines = self._log.read(100_000).decode(errors="replace").splitlines()
        found = (_LOG_LINE.match(line) for line in lines)
        return excerpt(next((match[1] for match in found if match), ""), 200)

    def stop(self) -> None:
        atexit.unregister(self.stop)
        self._process.kill()
        self._beginning.join()
        with self._process, self._log:
            pass


class LocalModel:
    def __init__(self, file: str, environment: Mapping[str, str]) -> None:
        self._load = load_of(file, environment)
        self.name = f"{LOCAL.name}:{file}"
        self.traits = ModelInfo(window=self._load.context)
        self._child: Child | None = None
        self._lock = threading.Lock()

    async def ask(self, request: ModelRequest, hear: TextListener | None = None) -> Reply:
        child = self._at_work()
        try:
            url = await asyncio.shield(asyncio.wrap_future(child.address))
        except ModelRefused as error:
            raise ModelRefused(f"{self._load.path}: cannot be loaded: {error}") from None
        served = ResolvedModel(LOCAL, self._load.path.name, f"{url}/v1", child.key)
        try:
            return await ProviderModel(served).ask(request, hear)
        except RequestRefused as error:
            if "context size" not in str(error):
                raise
            most = f"{self._load.context} tokens, as {CONTEXT} and the model have it"
            raise RequestRefused(f"The request is longer than {self.name} takes ({most}).") from None
        except ModelBusy:
            if not await asyncio.to_thread(child.ended):
                raise
            # The next try starts another one.
            raise ModelBusy(f"{self.name}: its process ended. {child.last_words()}".strip()) from None

    def stop(self) -> None:
        """It need not be called: it only frees what the end of our process frees too."""
        with self._lock:
            self._dismiss()

    def _dismiss(self) -> None:
        if self._child is not None:
            self._child.stop()
        self._child = None

    def _at_work(self) -> Child:
        with self._lock:
            if self._child is None or not self._child.alive:
                self._dismiss()
                self._child = Child(self._load)
            return self._child
