"""What a terminal shows that is too small for everything else."""

from __future__ import annotations

from typing import Final

from textual.geometry import Size
from textual.widgets import Static

MIN_SIZE: Final = Size(24, 10)


def is_too_small(size: Size) -> bool:
    return size.width < MIN_SIZE.width or size.height < MIN_SIZE.height


class TooSmall(Static):
    DEFAULT_CSS = """
    TooSmall { display: none; width: 100%; height: 100%; content-align: center middle; text-align: center; }
    """

    def __init__(self) -> None:
        super().__init__(f"Too small. Punchlist needs {MIN_SIZE.width} x {MIN_SIZE.height}.", markup=False)
