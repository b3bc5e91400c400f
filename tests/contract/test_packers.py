from colltune.core.topology import Topology
from colltune.schedule.filling import FillingPacker
from colltune.schedule.greedy import GreedyBatchPacker
from colltune.testing.packer import PackerContract


class TestGreedyBatchPacker(PackerContract):
    def make(self, topology: Topology) -> GreedyBatchPacker:
        return GreedyBatchPacker(topology)


class TestFillingPacker(PackerContract):
    def make(self, topology: Topology) -> FillingPacker:
        return FillingPacker(topology)
