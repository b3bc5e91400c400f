"""The benches in memory keep the contract of benches, so that what is tuned on them says something of real ones."""

from memory_bench import MemoryBench, MemoryLibrary

from bench_laws import BenchContract
from colltune.bench.contract import Bench
from colltune.core.sample import Choice, Scenario


def truth(scenario: Scenario, _choice: Choice) -> float:
    return 1e-6 * (1 + scenario.size_bytes)


class TestMemoryBench(BenchContract):
    def make(self) -> Bench:
        return MemoryBench(truth)


class TestMemoryLibrary(BenchContract):
    def make(self) -> Bench:
        return MemoryLibrary(truth)
