"""A ReFrame check: the tuning of this system against the library's default; it fails if any size is slower.

    reframe -c colltune_check.py -r -S tuned=/shared/colltune/outbox/active/tunings/mpich-5.0.2-1a2b3c4d/16x32

Run it after each upgrade of the system. `colltune` and the MPI that was tuned have to be on PATH in the job.
"""

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import run_after, run_before, sanity_function, variable


@rfm.simple_test
class TunedAgainstDefault(rfm.RunOnlyRegressionTest):
    """Compares default and tuned in fresh launches, also at sizes that were not tuned."""

    descr = "no call is slower with the tuning of this system than by default"
    valid_systems = ["*"]  # noqa: RUF012
    valid_prog_environs = ["*"]  # noqa: RUF012
    executable = "colltune"
    local = True  # colltune starts the ranks itself, inside the job that ReFrame got
    tuned = variable(str)
    launches = variable(int, value=8)  # from 6 on a difference can be told from noise
    via = variable(str, value="file")
    mpiexec = variable(str, value="")
    nodes = variable(int, value=1)
    ppn = variable(int, value=2)

    @run_after("init")
    def ask_for_the_job(self):
        self.num_tasks = self.nodes * self.ppn
        self.num_tasks_per_node = self.ppn

    @run_before("run")
    def compare(self):
        self.job.launcher = rfm.core.backends.getlauncher("local")()
        shape = ["--nodes", str(self.nodes), "--ppn", str(self.ppn)]
        mpi = ["--mpiexec", self.mpiexec] if self.mpiexec else []
        self.executable_opts = ["verify", self.tuned, "--launches", str(self.launches), "--via", self.via, *shape, *mpi]
        self.postrun_cmds = ['echo "colltune verify ended with $?"']

    @sanity_function
    def nothing_is_slower(self):
        return sn.assert_found(r"^colltune verify ended with 0$", self.stdout, "a size is slower with the tuning")
