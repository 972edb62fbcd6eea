"""What the head of a GGUF file says about the model: enough to refuse what is none, and to know its context."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO, Final

from punchlist.errors import ConfigError

_MAGIC: Final = b"GGUF"
_VERSIONS: Final = range(2, 10)
_STRING: Final = 8
_ARRAY: Final = 9
_SIZES: Final = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of each type of value that has a fixed size."""
_INTEGERS: Final = {4: "<I", 5: "<i", 10: "<Q", 11: "<q"}
_LONGEST_NAME: Final = 65_535
_MOST_VALUES: Final = 10_000


def trained_context(path: Path) -> int | None:
    """Tokens; None where the file does not say. Raises `ConfigError` for what is no GGUF file that can be read."""
    try:
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise ConfigError(f"{path}: is no GGUF file.")
            return _context(file)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror or error}).") from None
    except (EOFError, ValueError):
        raise ConfigError(f"{path}: is a damaged GGUF file.") from None


def _context(file: BinaryIO) -> int | None:
    if _number(file, "<I") not in _VERSIONS:
        raise ValueError("version")
    _number(file, "<Q")
    for _ in range(min(_number(file, "<Q"), _MOST_VALUES)):
        name = _exactly(file, _length(file, _LONGEST_NAME))
        kind = _number(file, "<I")
        if name.endswith(b".context_length") and kind in _INTEGERS:
            return _number(file, _INTEGERS[kind])
        if kind == _ARRAY:
            # The words of the model: what is asked for stands before them, in every file seen so far.
            return None
        file.seek(_length(file, 1 << 40) if kind == _STRING else _size(kind), 1)
    return None


def _size(kind: int) -> int:
    if kind not in _SIZES:
        raise ValueError("type")
    return _SIZES[kind]


def _length(file: BinaryIO, most: int) -> int:
    length = _number(file, "<Q")
    if length > most:
        raise ValueError("length")
    return length


def _number(file: BinaryIO, form: str) -> int:
    (number,) = struct.unpack(form, _exactly(file, struct.calcsize(form)))
    return int(number)


def _exactly(file: BinaryIO, size: int) -> bytes:
    found = file.read(size)
    if len(found) < size:
        raise EOFError
    return found
