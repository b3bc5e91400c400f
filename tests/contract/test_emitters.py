"""Every emitter keeps the laws of its contract."""

import os
import sys
import zlib
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from colltune.catalog import load
from colltune.core.errors import InputError
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import COLLECTIVES, DEFAULT, NONBLOCKING, TUNABLE, Choice, SizeBasis, blocking_form
from colltune.core.space import shapes
from colltune.emit.contract import variables_for
from colltune.emit.described import DescribedEmitter
from colltune.emit.intelmpi import FILE, IntelMpiEmitter, collectives_in, read_table, steps_of
from colltune.emit.live_rules import LiveEmitter, live_basis
from colltune.emit.mpich.selection_file import CH4_FILE, GENERAL_FILE, NB, MpichEmitter
from colltune.emit.mpich.tree import Call, decide, parse_tree
from colltune.emit.openmpi.rules_file import OpenMpiEmitter
from colltune.machine.described_file import parse_description
from colltune.machine.described_mpi import Description
from described_variables import rules_in
from emitter_laws import EmitterContract, choices_in_file, scenarios_at_bounds

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
import intel_tables
from mpich_trees import default_trees, leaves_of


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

    def require_decided(self, files: Mapping[str, bytes], rule_set: RuleSet) -> None:
        catalogue, trees = load("mpich", self.version), [parse_tree(files[name]) for name in (GENERAL_FILE, CH4_FILE)]
        for scenario in scenarios_at_bounds(rule_set):
            call = Call.of(scenario)
            leaves = tuple(decide(tree, call, catalogue.release) for tree in trees)
            assert leaves == leaves_of(catalogue, rule_set.evaluate(scenario), call), scenario


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
        return OpenMpiEmitter(load("openmpi", self.version), wide=self.wide)

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
        catalogue = load("intelmpi", "2021.17")
        return IntelMpiEmitter(catalogue, intel_tables.presets(catalogue))

    def collectives(self) -> dict[str, tuple[SizeBasis, tuple[Choice, ...]]]:
        catalogue = load("intelmpi", "2021.17")
        return {e.name: (e.basis, catalogue.choices(e.name)) for e in catalogue.entries.values() if e.algorithms}

    def test_what_the_rules_leave_to_the_library_is_as_it_was(self) -> None:
        emitter, tree = self.emitter(), intel_tables.presets(load("intelmpi", "2021.17")).tree
        assert read_table(emitter.emit([RuleSet.always("bcast", SizeBasis.MESSAGE)])[FILE]) == tree
        rules = (Rule(None, None, 63, DEFAULT), Rule(None, None, 64, Choice("ring")), Rule(None, None, None, DEFAULT))
        here = read_table(emitter.emit([RuleSet("bcast", SizeBasis.MESSAGE, rules)])[FILE])
        number = {name: place for place, name in enumerate(self.collectives())}["bcast"]
        before, after = (steps_of(collectives_in(one)[number]) for one in (tree, here))
        for ppn, ranks, size in product((1, 2, 3, 9), (2, 8, 9, 99), (0, 1, 63, 65, 66, 1 << 40)):
            assert after.at(ppn).at(ranks).at(size) == before.at(ppn).at(ranks).at(size)
        assert {k: v for k, v in collectives_in(tree).items() if k != number} == {
            k: v for k, v in collectives_in(here).items() if k != number
        }

    def test_golden_file(self) -> None:
        """The table for a fixed set of rules, byte for byte as it is unpacked. RENEW_GOLDEN=1 writes it anew."""
        bcast = (
            Rule(1, None, 64, Choice("ring")),
            Rule(1, None, None, DEFAULT),
            Rule(2, 6, 1000, Choice("knomial")),
            Rule(2, 6, None, DEFAULT),
            Rule(2, None, None, DEFAULT),
            Rule(None, None, None, DEFAULT),
        )
        rules = [
            RuleSet("bcast", SizeBasis.MESSAGE, bcast),
            RuleSet.always("alltoall", SizeBasis.MESSAGE, Choice("plum")),
        ]
        written, golden = self.emitter().emit(rules)[FILE], Path(__file__).parents[1] / "golden" / "intelmpi" / FILE
        if "RENEW_GOLDEN" in os.environ:
            golden.write_bytes(written)
        assert zlib.decompress(written) == zlib.decompress(golden.read_bytes())

    def test_a_choice_that_the_library_did_not_show_is_not_written(self) -> None:
        catalogue = load("intelmpi", "2021.17")
        known = intel_tables.presets(catalogue)
        emitter = IntelMpiEmitter(catalogue, replace(known, leaves={**known.leaves, "bcast": {}}))
        with pytest.raises(InputError, match="does not know bcast ring"):
            emitter.emit([RuleSet.always("bcast", SizeBasis.MESSAGE, Choice("ring"))])


DESCRIPTION = """
[mpi]
title = "an MPI"
mark = "mark"
version = "1"
[form]
variable = "MADE_{COLLECTIVE}"
%s
[collectives.bcast]
basis = "message"
algorithms = [{ key = "linear", value = "1" }, { key = "tree", value = "2" }, { key = "ring", value = "3" }]
"""


class TestDescribedByBounds(EmitterContract):
    """An MPI that its user describes, whose variables have upper bounds and a value for the library's own choice."""

    golden = "0:9@3;3:64@3;0:4611686018427387903@3;2:4611686018427387903@4611686018427387903"
    form = 'library = "0"\nseparator = ";"\nrule = "{value}:{high}@{ranks_high}"\nlargest = 4611686018427387903'

    def emitter(self) -> DescribedEmitter:
        return DescribedEmitter(self.description())

    def description(self) -> Description:
        description, faults = parse_description((DESCRIPTION % self.form).encode())
        assert description is not None, faults
        return description

    def parsed(self, files: Mapping[str, bytes], collective: str) -> RuleSet:
        return rules_in(files, self.description(), collective)

    def collectives(self) -> dict[str, tuple[SizeBasis, tuple[Choice, ...]]]:
        return {"bcast": (SizeBasis.MESSAGE, (DEFAULT, Choice("linear"), Choice("tree"), Choice("ring")))}

    def expressible(self, rule_set: RuleSet) -> RuleSet:
        return self.emitter().expressible(rule_set, shapes(12, 5))

    def test_the_environment_names_every_file(self) -> None:
        """It has what the file says, since the library reads no file."""
        files = self.emitter().emit([RuleSet.always("bcast", SizeBasis.MESSAGE, Choice("tree"))])
        ((name, value),) = variables_for(self.emitter(), Path("/opt/tuned"), files).items()
        assert name == "MADE_BCAST"
        assert files == {"variables.txt": f"{name}={value}\n".encode()}

    def test_golden_variable(self) -> None:
        bcast = (Rule(None, 3, 9, DEFAULT), Rule(None, 3, 64, Choice("ring")), Rule(None, 3, None, DEFAULT),
                 Rule(None, None, None, Choice("tree")))  # fmt: skip
        rules = self.expressible(RuleSet("bcast", SizeBasis.MESSAGE, bcast))
        written = self.emitter().emit([rules])["variables.txt"]
        assert written == (f"MADE_BCAST={self.golden}\n".encode() if self.golden else b"")


class TestDescribedByRanges(TestDescribedByBounds):
    golden = "0-3/10-64=3; 4-2147483647/0-2147483647=2"
    form = 'separator = "; "\nrule = "{ranks_low}-{ranks_high}/{low}-{high}={value}"'


class TestDescribedWithoutRanks(TestDescribedByBounds):
    golden = ""
    form = 'separator = ","\nrule = "{value}[{low}:{high}]"'


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
