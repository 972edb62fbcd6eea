"""The child that holds a local model: `python -P -m punchlist.models.local_server`, started by `local.py`.

It reads one line of JSON from stdin, loads the model, answers with one line of JSON on stdout, and serves
until stdin is closed: when its parent is gone, however it went, so is the child.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any


def main() -> None:
    # Ctrl-C is for the parent, which may still have something to ask.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        # Whatever the library prints goes with its log; stdout is for the answer.
        os.dup2(2, 1)
        wanted = json.loads(sys.stdin.readline())
        try:
            server = serve(wanted)
            answer = {"url": server.listening_address}
        except Exception as error:
            answer = {"failed": str(error)}
        answers.write(json.dumps(answer) + "\n")
    sys.stdin.read()
    # Not by the usual way out: threads of the library may be in the middle of a reply.
    os._exit(0)


def serve(wanted: Mapping[str, Any]) -> Any:
    xllamacpp = import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = wanted["path"]
    params.n_ctx = wanted["context"]
    params.n_parallel = 1
    # The library's own guess is more than a small machine has, and its threads then wait for each other.
    params.cpuparams.n_threads = _processors()
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.api_keys = [wanted["key"]]
    params.ui = False
    params.use_jinja = True
    if wanted["template"]:
        params.chat_template = wanted["template"]
    # Errors only.
    params.verbosity = 1
    return xllamacpp.Server(params)


def _processors() -> int:
    """How many we may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


if __name__ == "__main__":
    main()
