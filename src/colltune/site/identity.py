"""Which measurements of a site speak of one another: those of one machine, MPI build, thread level and fabric."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from colltune.core.hardware import Hardware
from colltune.core.sample import Environment
from colltune.machine.hardware_features import read_features
from colltune.machine.record import RunningMachine

# Variables by which a user sends messages over another network than the library would.
_CHOSEN_BY = ("FI_PROVIDER", "UCX_TLS", "UCX_NET_DEVICES", "MPIR_CVAR_OFI_USE_PROVIDER", "OMPI_MCA_pml", "OMPI_MCA_mtl")
_DIGITS = 16
_UNUSUAL = re.compile(r"[^A-Za-z0-9.-]")


@dataclass(frozen=True, slots=True, order=True)
class Identity:
    """``mpi_build``: the checksum of the library file. ``fabric``: the network between nodes, "" where nobody said."""

    machine: str
    mpi: str
    mpi_version: str
    mpi_build: str
    thread_level: str
    fabric: str

    @classmethod
    def of(cls, environment: Environment) -> "Identity":
        """That of measurements in ``environment``, whatever the shape of its job."""
        return cls(**{one.name: getattr(environment, one.name) for one in fields(cls)})

    @property
    def key(self) -> str:
        """A name of 16 hexadecimal digits, the same on every machine."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:_DIGITS]

    @property
    def label(self) -> str:
        """A short name for files, of letters, digits, dots and dashes: ``"mpich-5.0.2"``, with an unusual thread level.

        Entries come from any user: no path and no program is made of what they say.
        """
        level = "" if self.thread_level in ("", "single") else f"-{self.thread_level}"
        return _UNUSUAL.sub("_", f"{self.mpi}-{self.mpi_version}{level}").lstrip(".")[:80]

    def __str__(self) -> str:
        fabric = f", {self.fabric}" if self.fabric else ""
        return f"{self.mpi} {self.mpi_version} ({self.mpi_build[:8]}), {self.thread_level}, {self.machine}{fabric}"


def fabric_here(environ: Mapping[str, str]) -> str:
    """``describe_fabric`` of this node."""
    return describe_fabric(read_features(RunningMachine()), environ)


def describe_fabric(hardware: Hardware, environ: Mapping[str, str]) -> str:
    """The network of a node, as far as it is known, with what ``environ`` chooses of it: ``"infiniband 200 Gb/s"``."""
    rate = f" {hardware.link_gbits:g} Gb/s" if hardware.link_gbits else ""
    links = f" x {hardware.links}" if hardware.links and hardware.links > 1 else ""
    found = f"{hardware.fabric}{rate}{links}" if hardware.fabric else "unknown fabric"
    chosen = [f"{name}={environ[name]}" for name in _CHOSEN_BY if environ.get(name)]
    return ", ".join([found, *chosen])
