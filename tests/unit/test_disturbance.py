"""What counts as disturbed, what is said of it, and what the agent's reader makes of the files of a machine."""

import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from colltune.core.disturbance import LIMITS, Calmness, Disturbance, Load, Tally
from colltune.core.errors import InputError
from colltune.core.medians import broken_choices, medians_of
from colltune.core.sample import DEFAULT, Sample, Scenario, Status
from colltune.machine.compile import source_directory
from colltune.machine.conditions import advice, read_conditions
from colltune.machine.record import RunningMachine
from colltune.measure.request import read_load
from colltune.measure.watch import MOST_TRIES, Watch
from compiled import C_FLAGS, compiled

CALM, BUSY = Load(0.0, 0.02, 0.0, 0.0), Load(0.3, 0.5, 0.0, 0.0, node=1)


def counted(calm: int, busy: int, calm_s: float = 1.0, busy_s: float = 1.0) -> Tally:
    tally = Tally()
    for load, time_s in [(CALM, calm_s)] * calm + [(BUSY, busy_s)] * busy:
        tally.add(load, time_s)
    return tally


def test_a_machine_is_busy_where_most_measurements_are_disturbed() -> None:
    assert counted(4, 0).total().state is Calmness.CALM
    assert counted(4, 0).total().sentence == ""
    some = counted(9, 1).total(names=["n0", "n1"])
    assert some.state is Calmness.DISTURBED
    assert "in 1 of 10 measurements (10% of their time) other programs held" in some.sentence.lower()
    whole = counted(1, 9).total()
    assert whole.is_busy
    assert "nothing is judged" in whole.sentence
    assert "idle nodes" in whole.sentence
    on_a_node = Disturbance(True, 10, 9, "others", 0.5, "n17", disturbed_share=0.9)
    assert "other programs took 50% of the processors of n17" in on_a_node.sentence


def test_what_is_disturbed_counts_by_its_time() -> None:
    """Between two turns of the scheduler many short measurements pass that nobody disturbed."""
    assert counted(90, 10, calm_s=0.0003, busy_s=0.03).total().is_busy


def test_a_tuning_that_proved_something_in_calm_time_is_not_said_to_be_judged_nowhere() -> None:
    found = replace(counted(1, 9).total(), proven=True)
    assert found.state is Calmness.DISTURBED
    assert "9 of 10 measurements" in found.sentence
    assert "nothing is judged" not in found.sentence


def test_what_was_too_short_to_be_judged_alone_counts_with_its_launch() -> None:
    watch = Watch()
    for load in (Load(), Load(), CALM):
        watch.is_disturbed(load, 1.0)
    assert watch.is_disturbed_launch(["load others=0.6@0"])
    assert watch.tally.total().disturbed_share == pytest.approx(2 / 3, abs=1e-3)
    assert not watch.is_disturbed_launch(["load others=0@0"])


def test_what_came_before_a_mark_does_not_count() -> None:
    tally = counted(0, 10)
    mark = tally.mark
    for _ in range(3):
        tally.add(CALM, 1.0)
    assert tally.total().is_busy
    assert tally.total(mark).state is Calmness.CALM


@pytest.mark.parametrize(
    ("line", "state", "why"),
    [
        ("load others=0.6@0 stolen=0@0", Calmness.BUSY, "nothing is judged"),
        ("load others=0@0 stolen=0@0", Calmness.CALM, ""),
        ("load stolen=0@0 pressure=1@0", Calmness.UNKNOWN, "this system does not tell"),
        ("load stolen=0.6@0", Calmness.BUSY, "the hypervisor took 60%"),
        ("", Calmness.UNKNOWN, "no launch was measured to its end"),
    ],
)
def test_a_launch_is_judged_by_what_its_agent_says_last(line: str, state: Calmness, why: str) -> None:
    watch = Watch()
    assert watch.is_disturbed_launch([line]) is (state is Calmness.BUSY)
    assert watch.tally.total().state is state
    assert why in watch.tally.total().sentence
    assert bool(watch.tally.total().remark) is (state is not Calmness.CALM)


def test_what_the_user_accepts_is_not_judged_and_said() -> None:
    watch = Watch.of({"COLLTUNE_BUSY": "accept"})
    assert not watch.is_disturbed(BUSY, 1.0)
    assert watch.tally.total().state is Calmness.ACCEPTED
    assert "COLLTUNE_BUSY=accept" in watch.tally.total().sentence
    with pytest.raises(InputError, match="COLLTUNE_BUSY=yes"):
        Watch.of({"COLLTUNE_BUSY": "yes"})


@pytest.mark.parametrize("cause", LIMITS)
def test_each_cause_is_named_with_its_share(cause: str) -> None:
    tally = Tally()
    assert tally.add(CALM._replace(**{cause: 0.25}), 1.0)
    assert "25%" in tally.total().sentence


def test_what_is_disturbed_is_taken_again_while_there_is_patience() -> None:
    watch = Watch()
    watch.patience_s = 3.0
    waited = []
    while (pause_s := watch.pause_s(tries=1)) is not None:
        watch.is_disturbed(BUSY, 1.0)
        waited.append(pause_s)
    assert sum(waited) <= 3.0
    assert waited == sorted(waited)
    assert Watch().pause_s(MOST_TRIES) is None


def test_the_agent_names_the_node_that_was_disturbed_most() -> None:
    fields = {"waited": "0.01@0", "others": "0.4@3", "stolen": "0@0", "pressure": "1@2", "switches": "7@1"}
    assert read_load(fields) == Load(0.01, 0.4, 0.0, None, 1.0, 7, 3)
    assert read_load({}) == Load()


class Machine:
    """A directory that stands for the root of a machine: two processors, a rank on each, started by one launcher."""

    def __init__(self, root: Path, *, schedstat: bool = True, pressure: bool = True, cgroup: int = 2) -> None:
        self.root, self.schedstat, self.pressure, self.cgroup = root, schedstat, pressure, cgroup
        self.write({})

    def write(self, at: Mapping[str, float]) -> None:
        """``at``: seconds by name; what is not there is 0."""

        def of(name: str) -> float:
            return at.get(name, 0.0)

        for pid, run_s, wait_s in ((10, of("launcher"), 0.0), (11, of("run0"), of("wait0")), (12, of("run1"), 0.0)):
            ticks, parent = f"{int(run_s * 100)} 0", 1 if pid == 10 else 10
            self.file(f"proc/{pid}/stat", f"{pid} (a) b) S {parent} 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 20 0 1 0\n")
            self.file(f"proc/{pid}/status", "Name:\ta\nCpus_allowed_list:\t0-1\n")
            self.file(
                f"proc/{pid}/cgroup", "0::/job/step\n" if self.cgroup == 2 else "3:cpuset:/\n4:cpu,cpuacct:/job\n"
            )
            if self.schedstat:
                for name in (f"proc/{pid}/schedstat", f"proc/{pid}/task/{pid}/schedstat"):
                    self.file(name, f"{int(run_s * 1e9)} {int(wait_s * 1e9)} 5\n")
        lines = [f"cpu{n} {int(of('busy') * 50)} 0 0 9 0 0 0 {int(of('stolen') * 50)} 0 0" for n in (0, 1)]
        beside = "cpu2 99999999 0 0 0 0 0 0 0 0 0"
        self.file("proc/stat", "\n".join(["cpu  1 1 1 1", *lines, beside, "intr 5 5 5", ""]))
        if self.pressure:
            self.file("proc/pressure/cpu", f"some avg10=0.00 avg60=0.00 avg300=0.00 total={int(of('stalled') * 1e6)}\n")
        limited = of("limited")
        if self.cgroup == 2:
            self.file("sys/fs/cgroup/job/cpu.stat", f"usage_usec 1\nthrottled_usec {int(limited * 1e6)}\n")
        elif self.cgroup == 1:
            self.file(
                "sys/fs/cgroup/cpu,cpuacct/job/cpu.stat", f"nr_throttled 1\nthrottled_time {int(limited * 1e9)}\n"
            )

    def file(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        with path.open("r+") as file:  # in place: the reader keeps it open
            file.write(text)
            file.truncate()


@pytest.fixture(scope="module")
def driver() -> Path:
    load, sanitized = source_directory("load"), ("-g", "-fsanitize=address,undefined")
    return compiled("cc", *C_FLAGS, *sanitized, f"-I{load}", "load_of.c", load / "load.c", load / "load_files.c")


def shares(driver: Path, machine: Machine, after: Mapping[str, float], ranks: int = 2) -> Load:
    """What is told of a second in which the machine came from nothing to ``after``."""
    with subprocess.Popen(
        [driver, machine.root, *(str(11 + rank) for rank in range(ranks))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "begun\n"
        machine.write(after)
        told, _ = process.communicate("\n", timeout=60)
    assert process.returncode == 0
    return read_load(dict(word.split("=") for word in told.split()))


ALONE = {"run0": 1.0, "run1": 1.0, "busy": 2.0}
BESIDE = {"run0": 0.5, "wait0": 0.5, "run1": 1.0, "busy": 2.0, "stalled": 0.5}


@pytest.mark.parametrize(
    ("cgroup", "after", "expected"),
    [
        (2, ALONE, {"waited": 0.0, "others": 0.0, "stolen": 0.0, "throttled": 0.0}),
        # Another program on a processor is seen twice, and a tick of each processor is in doubt.
        (2, BESIDE, {"waited": 0.24, "others": 0.24, "pressure": 0.5}),
        # A limit of the control group in both versions.
        *((version, {**ALONE, "limited": 0.25}, {"throttled": 0.25, "others": 0.0}) for version in (1, 2)),
        (2, {"run0": 0.8, "run1": 0.8, "busy": 1.6, "stolen": 0.4}, {"stolen": 0.2}),
    ],
    ids=["alone", "beside another program", "limited (1)", "limited (2)", "stolen"],
)
def test_what_disturbs_is_told_apart(
    tmp_path: Path, driver: Path, cgroup: int, after: dict[str, float], expected: dict[str, float]
) -> None:
    found = shares(driver, Machine(tmp_path, cgroup=cgroup), after)
    assert {name: getattr(found, name) for name in expected} == pytest.approx(expected)
    assert set(found.causes) <= {name for name, share in expected.items() if share}


def test_the_launcher_and_ranks_that_share_processors_are_the_jobs_own(tmp_path: Path, driver: Path) -> None:
    machine = Machine(tmp_path)
    found = shares(driver, machine, {"run0": 0.9, "run1": 0.9, "launcher": 0.2, "wait0": 0.1, "busy": 2.0})
    assert found.causes == []
    for pid in (13, 14):
        for name in (f"proc/{pid}/schedstat", f"proc/{pid}/task/{pid}/schedstat"):
            machine.file(name, "0 0 0\n")
        machine.file(f"proc/{pid}/status", "Cpus_allowed_list:\t0-1\n")
        machine.file(f"proc/{pid}/stat", f"{pid} (a) S 10 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0\n")
    machine.write({})
    crowded = shares(driver, machine, {"run0": 1.0, "run1": 1.0, "wait0": 1.0, "busy": 2.0}, ranks=4)
    assert crowded.waited is None  # ranks wait for one another
    assert crowded.causes == []


def test_what_a_system_does_not_tell_is_not_known(tmp_path: Path, driver: Path) -> None:
    found = shares(driver, Machine(tmp_path, schedstat=False, pressure=False, cgroup=0), BESIDE)
    assert (found.waited, found.throttled, found.pressure) == (None, None, None)
    assert found.others == pytest.approx(0.24)  # by ticks
    nothing = shares(driver, Machine(tmp_path / "empty", schedstat=False, pressure=False, cgroup=0), {}, ranks=0)
    assert not nothing.is_known


def test_conditions_are_read_with_what_to_do_about_them(tmp_path: Path) -> None:
    assert read_conditions(RunningMachine(tmp_path)) == {}
    cpu = "sys/devices/system/cpu"
    file = Machine(tmp_path).file
    for number in range(2):
        file(f"{cpu}/cpu{number}/cpufreq/scaling_governor", "powersave\n")
        file(f"{cpu}/cpu{number}/cpufreq/scaling_min_freq", "800000\n")
        file(f"{cpu}/cpu{number}/cpufreq/scaling_max_freq", "3500000\n")
    file(f"{cpu}/intel_pstate/no_turbo", "0\n")
    file(f"{cpu}/smt/active", "0\n")
    file("proc/cpuinfo", "processor : 0\nflags\t\t: fpu hypervisor\n")
    file("sys/fs/cgroup/cpu.max", "150000 100000\n")
    file("proc/loadavg", "1.50 1 1 2/3 4\n")
    found = read_conditions(RunningMachine(tmp_path))
    assert (found["governor"], found["frequency"]) == ("powersave", "0.80 to 3.50 GHz")
    assert (found["turbo"], found["SMT"], found["virtual machine"]) == ("on", "off", "yes")
    assert found["limit"] == "1.5 processors"
    told = list(advice(found))
    assert [text.split()[0] for text in told] == ["governor", "turbo", "virtual", "limit"]


def test_times_of_a_disturbed_sample_count_nowhere() -> None:
    lost = Sample(Scenario("bcast", 1, 2, 64), DEFAULT, Status.DISTURBED, (1e-6,), load=BUSY)
    assert medians_of([lost]) == {}
    assert broken_choices([lost]) == set()
