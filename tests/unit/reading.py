"""How readers of what others wrote are listed: READERS, by their names, which readers.py fills."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mutation import Mutation

ROOT = Path(__file__).parents[2]
GOLDEN, RECORDED, DATA = ROOT / "tests/golden", ROOT / "tests/recorded", ROOT / "benchmarks/data"
TUNINGS = [RECORDED / "tunings" / name for name in ("ended", "measured", "predicted")]

Read = Callable[[bytes], object]
Seeds = Callable[[], Sequence[bytes]]


@dataclass(frozen=True)
class Reader:
    """``modules``: those of the package that read here. ``seeds``: makes the files to begin from.

    ``read`` takes the bytes of a changed file. It may raise the errors of the package and nothing else; ``also`` names
    those that its caller turns into one.
    """

    name: str
    modules: tuple[str, ...]
    mutation: Mutation
    read: Read
    seeds: Seeds
    also: tuple[type[Exception], ...] = ()


READERS: dict[str, Reader] = {}


def reader(
    modules: str, mutation: Mutation, seeds: Seeds, also: tuple[type[Exception], ...] = ()
) -> Callable[[Read], Read]:
    """Lists the function below it."""

    def add(read: Read) -> Read:
        READERS[read.__name__] = Reader(read.__name__, tuple(modules.split()), mutation, read, cache(seeds), also)
        return read

    return add


def file_reader(
    name: str, modules: str, mutation: Mutation, seeds: Seeds, read: Callable[[Path], object], file: str = "f"
) -> None:
    """Lists what reads the path of a file, whose name is ``file``."""

    def of_bytes(data: bytes) -> None:
        with folder(**{file: data}) as place:
            read(place / file)

    READERS[name] = Reader(name, tuple(modules.split()), mutation, of_bytes, cache(seeds))


def text_reader(name: str, modules: str, mutation: Mutation, seeds: Seeds, *parse: Callable[[str], object]) -> None:
    """Lists what parses text."""

    def of_bytes(data: bytes) -> None:
        for each in parse:
            each(text_of(data))

    READERS[name] = Reader(name, tuple(modules.split()), mutation, of_bytes, cache(seeds))


@contextmanager
def folder(**files: bytes) -> Iterator[Path]:
    """A folder of these files, by their paths in it."""
    with tempfile.TemporaryDirectory(prefix="colltune-test-") as place:
        for name, data in files.items():
            path = Path(place) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        yield Path(place)


def files(*paths: Path) -> Seeds:
    return lambda: [path.read_bytes() for path in paths]


def texts(*some: str) -> Seeds:
    return lambda: [text.encode() for text in some]


def text_of(data: bytes) -> str:
    return data.decode("utf-8", "replace")
