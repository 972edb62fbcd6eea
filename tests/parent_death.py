"""For the programs that tests start: none survives the test run, however that ends."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def end_with_parent() -> None:
    """Be killed when the parent process ends. Linux only; elsewhere a helper ends when its input does."""
    if sys.platform != "linux":
        return
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        # It has ended before the call.
        os.kill(os.getpid(), signal.SIGKILL)
