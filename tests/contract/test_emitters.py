"""Every emitter keeps the laws of its contract."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from colltune.catalog import load
from colltune.core.choice import Choice
from colltune.core.scenario import COLLECTIVES, SizeBasis
from colltune.emit.mpich import MpichEmitter
from colltune.testing.emitter import EmitterContract

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
from mpich_trees import default_trees


class MpichContract(EmitterContract):
    version = ""

    def emitter(self) -> MpichEmitter:
        return MpichEmitter(load("mpich", self.version), default_trees())

    def collectives(self) -> dict[str, tuple[SizeBasis, tuple[Choice, ...]]]:
        catalogue = load("mpich", self.version)
        return {name: (catalogue.collective(name).basis, catalogue.choices(name)) for name in COLLECTIVES}


class TestMpich40(MpichContract):
    version = "4.0.3"


class TestMpich42(MpichContract):
    version = "4.2.3"


class TestMpich50(MpichContract):
    version = "5.0.2"


def test_the_contract_itself_is_not_collected() -> None:
    with pytest.raises(TypeError):
        EmitterContract()  # type: ignore[abstract]
