"""Every emitter keeps the laws of its contract."""

import sys
from pathlib import Path

import pytest

from colltune.catalog import load
from colltune.catalog.openmpi_components import OpenMpiCatalogue
from colltune.core.choice import DEFAULT, Choice
from colltune.core.errors import InputError
from colltune.core.rules import Rule, RuleSet
from colltune.core.scenario import COLLECTIVES, NONBLOCKING, TUNABLE, SizeBasis, blocking_form
from colltune.core.space import shapes
from colltune.emit.intelmpi import IntelMpiEmitter
from colltune.emit.live_rules import LiveEmitter, live_basis
from colltune.emit.mpich.nonblocking import NB
from colltune.emit.mpich.selection_file import MpichEmitter
from colltune.emit.openmpi.rules_file import OpenMpiEmitter
from emitter_laws import EmitterContract, choices_in_file

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
from mpich_trees import default_trees


class MpichContract(EmitterContract):
    version = ""

    def emitter(self) -> MpichEmitter:
        return MpichEmitter(load("mpich", self.version), default_trees())

    def collectives(self) -> dict[str, tuple[SizeBasis, tuple[Choice, ...]]]:
        """Without ``nb`` where its non-blocking form has rules: there it means what these say."""
        catalogue = load("mpich", self.version)
        both = {blocking_form(name) for name in NONBLOCKING}
        return {
            name: (
                catalogue.collective(name).basis,
                tuple(choice for choice in choices_in_file(catalogue, name) if choice != NB or name not in both),
            )
            for name in TUNABLE
        }

    def expressible(self, rule_set: RuleSet) -> RuleSet:
        return self.emitter().agreeing(rule_set)


class TestMpich40(MpichContract):
    version = "4.0.3"


class TestMpich42(MpichContract):
    version = "4.2.3"


class TestMpich50(MpichContract):
    version = "5.0.2"


class OpenMpiContract(EmitterContract):
    version = ""
    wide = True

    def emitter(self) -> OpenMpiEmitter:
        catalogue = load("openmpi", self.version)
        assert isinstance(catalogue, OpenMpiCatalogue)
        return OpenMpiEmitter(catalogue, wide=self.wide)

    def collectives(self) -> dict[str, tuple[SizeBasis, tuple[Choice, ...]]]:
        catalogue = load("openmpi", self.version)
        entries = [catalogue.collective(name) for name in COLLECTIVES]
        return {e.name: (e.basis, catalogue.choices(e.name)) for e in entries if e.nothing_to_tune is None}

    def expressible(self, rule_set: RuleSet) -> RuleSet:
        return self.emitter().expressible(rule_set, shapes(16, 16))


class TestOpenMpi41(OpenMpiContract):
    version = "4.1.4"
    wide = False


class TestOpenMpi50(OpenMpiContract):
    version = "5.0.11"


class TestIntelMpi(EmitterContract):
    def emitter(self) -> IntelMpiEmitter:
        return IntelMpiEmitter(load("intelmpi", "2021.18"))

    def collectives(self) -> dict[str, tuple[SizeBasis, tuple[Choice, ...]]]:
        """Without the default, of which Intel MPI knows nothing."""
        catalogue = load("intelmpi", "2021.18")
        return {e.name: (e.basis, catalogue.choices(e.name)[1:]) for e in catalogue.entries.values() if e.algorithms}

    def expressible(self, rule_set: RuleSet) -> RuleSet:
        return self.emitter().expressible(rule_set, shapes(16, 16))

    def test_where_a_default_stays_nothing_is_written(self) -> None:
        some = Rule(None, None, 64, Choice("ring"))
        rules = RuleSet("allreduce", SizeBasis.MESSAGE, (some, Rule(None, None, None, DEFAULT)))
        assert self.expressible(rules) == RuleSet.always("allreduce", SizeBasis.MESSAGE)
        with pytest.raises(InputError, match="own decision"):
            self.emitter().emit([rules])


class LiveContract(EmitterContract):
    library = ""

    def emitter(self) -> LiveEmitter:
        catalogue = load(self.library, "5.0.2")
        return LiveEmitter(catalogue, lambda collective, choice: [(f"{collective}_algorithm", len(str(choice)))])

    def collectives(self) -> dict[str, tuple[SizeBasis, tuple[Choice, ...]]]:
        catalogue = load(self.library, "5.0.2")
        entries = [catalogue.collective(name) for name in COLLECTIVES]
        return {e.name: (live_basis(catalogue, e.name), catalogue.choices(e.name)) for e in entries}


class TestLiveMpich(LiveContract):
    library = "mpich"


class TestLiveOpenMpi(LiveContract):
    library = "openmpi"


def test_the_contract_itself_is_not_collected() -> None:
    with pytest.raises(TypeError):
        EmitterContract()  # type: ignore[abstract]
