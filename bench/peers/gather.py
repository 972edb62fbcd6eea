"""Bare `asyncio.gather`: the cost of the event loop."""

from __future__ import annotations

import asyncio
import platform

from rounds import Round, main  # type: ignore[import-not-found]  # in the folder of this script, which is run by path


async def nothing(n: int) -> int:
    return n


def prepare(calls: int) -> Round:
    async def run() -> list[int]:
        return await asyncio.gather(*(nothing(n) for n in range(calls)))

    return run


if __name__ == "__main__":
    main("asyncio.gather", platform.python_version(), prepare)
