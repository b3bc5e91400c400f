from colltune.core.topology import Topology
from colltune.schedule.filling import FillingPacker
from greedy_batches import GreedyBatchPacker
from packer_laws import PackerContract


class TestGreedyBatchPacker(PackerContract):
    def make(self, topology: Topology) -> GreedyBatchPacker:
        return GreedyBatchPacker(topology)


class TestFillingPacker(PackerContract):
    def make(self, topology: Topology) -> FillingPacker:
        return FillingPacker(topology)
