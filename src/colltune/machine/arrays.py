"""Arrays of numbers out of NumPy's files, whoever wrote them: what a file says of itself is checked first.

NumPy's own reader takes the memory that a head asks for, and raises whatever its parser does.
"""

import ast
import io
import math
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colltune.machine.files import MOST_BYTES

_MAGIC = b"\x93NUMPY"
_HEAD_BYTES = 1 << 10  # of plain numbers; a head of ours has 118
_KINDS = "biuf"


def read_array(data: bytes) -> NDArray[Any]:
    """The array of a .npy. Raises ValueError for what is none of plain numbers, or is not as long as it says."""
    size = int.from_bytes(data[8:10], "little")
    head = data[10 : 10 + size]
    if data[:6] != _MAGIC or data[6:7] != b"\x01" or len(head) < size or size > _HEAD_BYTES:
        raise ValueError("it does not begin as an array")
    try:
        header = ast.literal_eval(head.decode("latin-1").strip())
        kind, shape, columns_first = np.dtype(str(header["descr"])), header["shape"], header["fortran_order"]
    except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError) as error:
        raise ValueError(f"its head cannot be read: {type(error).__name__}") from None
    if kind.kind not in _KINDS or not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError(f"it holds {str(kind)[:40]}, not plain numbers")
    numbers = memoryview(data)[10 + size :]
    if math.prod(shape) * kind.itemsize != len(numbers):
        raise ValueError("it is not as long as it says")
    return np.frombuffer(numbers, kind).reshape(shape, order="F" if columns_first else "C")


class Archive(Mapping[str, NDArray[Any]]):
    """The arrays of a .npz by name; each is decompressed when it is looked up.

    Raises ValueError for what is no archive, and for an array that is none or has over MOST_BYTES.
    """

    def __init__(self, data: bytes) -> None:
        try:
            self._file = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, OSError, NotImplementedError) as error:
            raise ValueError(f"it is no archive: {error}") from None
        self._members = {member.filename.removesuffix(".npy"): member for member in self._file.infolist()}

    def __getitem__(self, name: str) -> NDArray[Any]:
        member = self._members[name]
        try:
            with self._file.open(member) as part:
                content = part.read(MOST_BYTES + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError) as error:
            raise ValueError(f"its {name[:40]!r} cannot be decompressed: {error}") from None
        if len(content) > MOST_BYTES:
            raise ValueError(f"its {name[:40]!r} is too large")
        return read_array(content)

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)
