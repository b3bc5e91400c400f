"""The laws of a bench, as a test class to inherit."""

import abc
from contextlib import closing
from itertools import islice

import pytest

from colltune.bench.contract import Bench
from colltune.core.errors import InputError
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import DEFAULT, Choice, Scenario, Status
from colltune.core.space import Point, Space
from colltune.measure.contract import Effort

_EFFORT = Effort(relative_width=0.5, box_s=0.0005, fewest=3, most=8, warm_up=1)
_SMALLEST, _LARGEST = 64, 4096


class BenchContract(abc.ABC):
    """Inherit, and say how the bench under test is made; ``collective`` is one that it can measure."""

    collective = "bcast"

    @abc.abstractmethod
    def make(self) -> Bench: ...

    def space(self, bench: Bench) -> Space:
        return bench.space(self.collective, _SMALLEST, _LARGEST)

    def test_it_is_what_its_environment_says(self) -> None:
        bench = self.make()
        assert (bench.nodes, bench.ppn) == (bench.environment.nodes, bench.environment.ppn)
        assert bench.headline
        assert len(bench.topology(None, lambda _text: None).hosts) >= bench.nodes

    def test_its_space_holds_what_the_job_can_form_and_what_is_legal_there(self) -> None:
        bench = self.make()
        space = self.space(bench)
        assert space.scenarios
        for scenario in space.scenarios:
            assert 1 <= scenario.nodes <= bench.nodes
            assert 1 <= scenario.ppn <= bench.ppn
            assert _SMALLEST <= scenario.size_bytes <= _LARGEST
            assert set(space.choices(scenario)) <= set(bench.legal(scenario))

    def test_what_candidates_are_compared_with_can_be_measured_and_is_measured_once(self) -> None:
        """The default is not in the space beside the candidate that it is, unless the library chooses by itself."""
        bench = self.make()
        space = self.space(bench)
        for scenario in space.scenarios:
            choices = space.choices(scenario)
            baseline = bench.baseline(scenario)
            assert baseline in bench.legal(scenario)
            assert baseline in choices
            assert bench.library is not None or len({DEFAULT, baseline} & set(choices)) == 1

    def test_launches_take_samples_of_this_environment_and_time(self) -> None:
        bench = self.make()
        before_s = bench.now_s()
        scenario = max(self.space(bench).scenarios, key=lambda s: s.ranks)
        points = [Point(scenario, (bench.baseline(scenario),))]
        with closing(bench.launch(1)) as launch:
            launch.start()
            answers = list(launch.measure(points, _EFFORT))
        assert [point for point, _ in answers] == points
        assert {sample.status for _, samples in answers for sample in samples} == {Status.OK}
        assert launch.environment == bench.environment
        assert launch.launches == 1 + bench.by_launches
        assert launch.inside_s > 0.0
        assert bench.now_s() >= before_s + max(sample.time_s for _, samples in answers for sample in samples)

    def test_a_launch_whose_time_is_over_measures_nothing(self) -> None:
        bench = self.make()
        launch = bench.launch(1)
        try:
            launch.start()
            launch.until_s = bench.now_s()
            points = [Point(s, (bench.baseline(s),)) for s in islice(self.space(bench).scenarios, 3)]
            assert list(launch.measure(points, _EFFORT)) == []
        finally:
            launch.kill()

    def test_its_tuning_is_of_the_rules_that_it_can_express(self) -> None:
        bench = self.make()
        basis = bench.catalogue.collective(self.collective).basis
        always = RuleSet.always(self.collective, basis)
        assert not bench.expressible(always).departs
        choice = next(c for c in self._choices(bench) if c != DEFAULT)
        said = bench.expressible(RuleSet(self.collective, basis, (Rule(None, None, None, choice),)))
        tuning = bench.tuning({self.collective: said})
        assert tuning.environment == bench.environment
        assert tuning.rule_sets == {self.collective: said}
        # What no library loads is in no file.
        assert bool(tuning.files) == bool(tuning.variables) == (bench.library is not None)

    def test_a_topology_that_is_none_is_refused(self) -> None:
        with pytest.raises(InputError):
            self.make().topology("no such topology", lambda _text: None)

    def test_a_library_knows_the_settings_of_what_is_legal(self) -> None:
        bench = self.make()
        if bench.library is None:
            pytest.skip("no library loads the files of this bench")
        for choice in self._choices(bench):
            found = bench.library.settings(self.collective, choice)
            assert (found is None) == (bench.by_launches and choice != DEFAULT)
        assert bench.library.environment == bench.environment

    def _choices(self, bench: Bench) -> tuple[Choice, ...]:
        scenario = Scenario(self.collective, bench.nodes, bench.ppn, _LARGEST)
        return bench.legal(scenario)
