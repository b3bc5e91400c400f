"""Module files of a release, for Lmod and for Tcl: they load the tuning of the shape of the job that loads them.

Each checks that the MPI library is still the one that was tuned, by its checksum, and does nothing but set variables.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from colltune.core.sample import grouped
from colltune.site.entry import Identity


@dataclass(frozen=True)
class PublishedTuning:
    """A tuning in a release. ``directory``: within it. ``entry``: where it comes from. ``files``: their SHA-256.

    ``writers``: the users whose jobs handed it over or confirmed it, by their numbers.
    """

    directory: str
    identity: Identity
    nodes: int
    ppn: int
    entry: str
    confirmed_s: float
    collectives: tuple[str, ...]
    proven: int
    variables: Mapping[str, str]
    libmpi: str
    files: Mapping[str, str]
    writers: tuple[int, ...] = ()


_PLACE = "{directory}"
_ABOUT = "Selection of collective algorithms for {identity}, tuned on this machine by colltune."
_SIGNED = """\
To see who signed it, in {place}:
sha256sum --check SHA256SUMS
ssh-keygen -Y verify -n colltune -I NAME -f SIGNERS -s SHA256SUMS.sig < SHA256SUMS"""


def module_files(place: Path, tunings: Sequence[PublishedTuning]) -> dict[str, bytes]:
    """By their names in the release at ``place``: one for each identity, in ``modules/lmod`` and ``modules/tcl``."""
    from jinja2 import Environment, StrictUndefined

    jinja = Environment(undefined=StrictUndefined, keep_trailing_newline=True)
    templates = resources.files("colltune.site")
    files: dict[str, bytes] = {}
    for name, published in _named(tunings):
        identity = published[0].identity
        values = {
            "about": _plain(_ABOUT.format(identity=identity)),
            "place": _plain(str(place.resolve())),
            "name": name,
            "signed": _SIGNED.format(place=_plain(str(place.resolve()))),
        }
        lua, tcl = (
            jinja.from_string((templates / f"module.{language}.j2").read_text(encoding="utf-8")).render(values).encode()
            for language in ("lua", "tcl")
        )
        files[f"modules/lmod/colltune-tuned/{name}.lua"] = lua
        files[f"modules/tcl/colltune-tuned/{name}"] = tcl
        files[f"modules/shapes/{name}"] = _shapes(published).encode()
    return files


def _shapes(tunings: Sequence[PublishedTuning]) -> str:
    """What a module reads of a release, a line each, without a quote or a bracket."""
    lines = [f"libmpi {_plain(tunings[0].libmpi)}", f"build {_plain(tunings[0].identity.mpi_build)}"]
    for tuning in sorted(tunings, key=lambda tuning: (tuning.nodes * tuning.ppn, tuning.nodes)):
        lines.append(f"tuning {tuning.nodes} {tuning.ppn} {tuning.directory}")
        for name, value in sorted(tuning.variables.items()):
            lines.append(f"set {_plain(name)} {_PLACE.join(map(_plain, value.split(_PLACE)))}")
    return "\n".join(lines) + "\n"


def _named(tunings: Sequence[PublishedTuning]) -> Iterator[tuple[str, Sequence[PublishedTuning]]]:
    """A version of the module for each identity: MPI and version, and what it takes to tell them apart."""
    by_identity = grouped(tunings, lambda tuning: tuning.identity)
    labels = Counter(identity.label for identity in by_identity)
    for identity, mine in sorted(by_identity.items()):
        yield (identity.label if labels[identity.label] == 1 else f"{identity.label}-{identity.key[:8]}"), mine


def _plain(text: str) -> str:
    """``text`` without what ends a string of Lua, a word of Tcl or of a shell, or is evaluated in one."""
    return "".join(character for character in text if character.isprintable() and character not in "\"\\[]{}$'`;")
