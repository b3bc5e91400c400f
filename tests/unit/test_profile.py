"""Profiles without an MPI: reading, writing, the share of the time, and when measuring stops to pay."""

from dataclasses import replace
from pathlib import Path

import pytest

from colltune.cli.profile_show import print_profile
from colltune.core.errors import InputError
from colltune.core.sample import DEFAULT, Choice, Sample, Scenario, Status
from colltune.core.space import Point
from colltune.learn.expected_gain import ExpectedGain, gains_of
from colltune.machine.command_lines import mpiexec_option
from colltune.profile.advice import benefit_text, tunable_by_name, tunable_share
from colltune.profile.application_profile import Calls, Communicator, Profile, side_by_side, time_shares
from colltune.profile.parts import part_files, read_parts
from colltune.profile.profile_files import load_profile, preload_command, preload_environment, save_profile
from colltune_study.research.weights import calls_per_second
from commands import shell_script

_JOB = (
    "job ranks_seen={} ranks=4 nodes=2 elapsed_ns=2000000000 threads_multiple=0 clock_error_ns=150 lost_calls={} "
    "lost_stamps=0"
)
_WHERE = "size=4 remote_size=0 nodes=2 ppn=2 even=1"
_CALL = (
    "call {where} function={function} form=blocking op=none bin=11 calls={calls} bytes=4096 time_ns={time_ns} "
    "size_sum={sum} size_least=1024 size_most=1024"
)


def write(path: Path, *lines: str) -> None:
    path.write_text("\n".join(["colltune-profile 1", *lines, "end"]) + "\n")


def merged(tmp_path: Path) -> Profile:
    write(
        tmp_path / "app.json.all",
        _JOB.format("all", 0),
        f"communicators {_WHERE} count=8",
        _CALL.format(where=_WHERE, function="alltoall", calls=400, time_ns=2_000_000_000, sum=409600),
        _CALL.format(where=_WHERE, function="bcast", calls=40, time_ns=40_000_000, sum=40960),
    )
    return read_parts(part_files(tmp_path / "app.json"))


def test_a_merged_file_is_read_and_survives_its_own(tmp_path: Path) -> None:
    profile = replace(merged(tmp_path), command=("mpiexec", "./app"), mpi="mpich 5.0.2")
    alltoall = next(one for one in profile.calls if one.collective == "alltoall")
    assert (alltoall.calls, alltoall.size_mean, alltoall.time_s) == (100.0, 1024.0, 2.0)
    assert profile.communicators == ((Communicator(4, 2, 2), 2.0),)
    save_profile(tmp_path / "saved.json", profile)
    assert load_profile(tmp_path / "saved.json") == profile


def test_communicators_that_share_their_nodes_are_counted() -> None:
    """Of 4 x 4 ranks: all, rows of two ranks, columns of one on each node, leaders, and uneven ones."""
    forms = {
        Communicator(16, 4, 4): 1.0,
        Communicator(2, 1, 2): 8.0,
        Communicator(4, 4, 1): 4.0,
        Communicator(2, 2, 1): 1.0,
        Communicator(5, 2, 3, even=False): 2.0,
        Communicator(4, 0, 0): 3.0,
        Communicator(4, 2, 2, remote_size=4): 3.0,
    }
    profile = Profile((), tuple(forms.items()), 16, 4, 1.0, 16)
    assert side_by_side(profile, 4) == {(4, 4): 1, (1, 2): 2, (4, 1): 4, (2, 1): 1, (2, 2): 1}
    assert side_by_side(profile, 2) == {(4, 4): 1, (1, 2): 1, (4, 1): 2, (2, 1): 1, (2, 2): 1}


def test_the_command_to_tune_names_the_mpi_that_is_not_the_nearest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mpiexec = shell_script(tmp_path / "mpiexec", "")
    for command, option in ((str(mpiexec), f" --mpiexec {mpiexec}"), ("./script", "")):
        print_profile(replace(merged(tmp_path), command=(command, "-n", "4", "./app")), Path("app.json"), brief=True)
        shown = capsys.readouterr().out
        assert f"tune --profile app.json{option} --runtime 2h" in shown
    assert mpiexec_option(None) == []


def test_what_the_record_had_no_room_for_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = merged(tmp_path)
    print_profile(profile, tmp_path / "app.json", brief=False)
    assert "no room" not in capsys.readouterr().out
    print_profile(replace(profile, lost_calls=3), tmp_path / "app.json", brief=False)
    told = " ".join(capsys.readouterr().out.split())
    assert "3 calls of kinds that the table had no room for" in told


def of_ranks(path: Path, ranks: tuple[int, ...], lost: int, line: str) -> Profile:
    """Each of ``ranks`` left ``line`` and ten calls, and has lost as many as it says."""
    call = _CALL.format(where=_WHERE, function="bcast", calls=10, time_ns=10, sum=10240)
    for rank in ranks:
        write(path.with_suffix(f".json.{rank}"), _JOB.format("one", lost), line, call)
    return load_profile(path)


def test_parts_of_single_ranks_add_up(tmp_path: Path) -> None:
    profile = of_ranks(tmp_path / "app.json", (0, 3), 1, "ended MPI_Abort")
    assert (profile.reporting, profile.ranks, profile.ended, profile.lost_calls) == (2, 4, "MPI_Abort", 2)
    assert (profile.calls[0].rank_calls, profile.calls[0].members) == (20, 0)
    # Calls are those of the ranks that left a profile.
    profile = of_ranks(tmp_path / "some.json", (0, 1, 3), 0, f"communicators {_WHERE} count=1")
    assert (profile.calls[0].calls, profile.communicators) == (10, ((Communicator(4, 2, 2), 1.0),))
    assert profile.ended == "what left no profile"


@pytest.mark.parametrize(("size", "remote", "noted"), [(2, 3, 2), (3, 3, 6)])
def test_calls_of_an_intercommunicator_are_those_of_its_groups(size: int, remote: int, noted: int) -> None:
    where = Communicator(size, 0, 0, remote_size=remote)
    assert Calls(where, "bcast", "blocking", "", 7 * noted, 0, 1.0, 8, 8.0, 8).calls == 7


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"kind": "colltune-profile", "schema": 99}', "nonsense", None])
def test_what_is_no_profile_is_refused(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "app.json"
    save_profile(path, merged(tmp_path))
    of_no_rank = path.read_text().replace('"size": 4', '"size": 0')
    path.write_text(of_no_rank if text is None else text)
    with pytest.raises(InputError, match=r"app\.json" if text is not None else r"app\.json.*communicator of 0 ranks"):
        load_profile(path)
    path.unlink()
    part = tmp_path / "app.json.all"
    whole = part.read_text()
    for cut in range(1, 8):
        part.write_text(whole[: -20 * cut])
        with pytest.raises(InputError, match="cut short"):
            load_profile(path)


def test_the_stake_is_the_share_of_the_time_and_the_most_that_tuning_can_save_is_told(tmp_path: Path) -> None:
    """4 ranks times 2 s; 2 s of them in alltoall."""
    profile = merged(tmp_path)
    assert time_shares(profile)[_DEAR] == pytest.approx(2.0 / 8.0)
    assert calls_per_second(profile)[_DEAR] == pytest.approx(50.0)
    assert tunable_share(profile) == pytest.approx((2.0 + 0.04) / 8.0)
    assert benefit_text(tunable_share(profile)).startswith("Tuning can save at most 12.8% of the run")
    assert benefit_text(tunable_share(replace(profile, elapsed_s=1000.0))).startswith("Tuning cannot pay")


def test_short_calls_that_a_run_makes_seldom_do_not_count(tmp_path: Path) -> None:
    profile = merged(tmp_path)
    one = profile.calls[0]

    def measured(rank_calls: int, size: int = 1024, times: int = 1) -> set[Scenario]:
        seldom = replace(one, rank_calls=rank_calls, size_least=size, size_mean=size, size_most=size)
        return set(time_shares(replace(profile, calls=(seldom,) * times)))

    assert measured(9 * 4) == set()
    assert measured(10 * 4) == measured(5 * 4, times=2) == {_DEAR}
    assert measured(4, 1 << 16) == {Scenario("alltoall", 2, 2, 1 << 16)}


def test_calls_that_cannot_be_tuned_have_no_scenario(tmp_path: Path) -> None:
    one = merged(tmp_path).calls[0]
    assert one.scenarios() == (Scenario("alltoall", 2, 2, 1024),)
    assert replace(one, form="nonblocking").scenarios() == ()
    assert replace(one, collective="gatherv").scenarios() == ()
    assert replace(one, communicator=Communicator(4, 0, 0)).scenarios() == ()
    assert replace(one, communicator=Communicator(4, 2, 2, remote_size=3)).scenarios() == ()
    assert replace(one, collective="barrier", size_least=0, size_most=0).scenarios() == (Scenario("barrier", 2, 2, 0),)
    # A range of sizes is stood for by its ends, in whole elements; 5 ranks on 2 nodes by the nearest even shape.
    ranged = replace(one, collective="allreduce", size_least=1025, size_most=1999)
    ranged = replace(ranged, communicator=Communicator(5, 2, 3, False))
    assert ranged.scenarios() == (Scenario("allreduce", 2, 2, 1024), Scenario("allreduce", 2, 2, 1996))


_DEAR, _CHEAP = Scenario("alltoall", 2, 2, 1024), Scenario("bcast", 2, 2, 64)
_CHOICES = (DEFAULT, Choice("a"), Choice("b"), Choice("c"))


def sample(scenario: Scenario, choice: Choice, time_s: float) -> Sample:
    return Sample(scenario, choice, Status.OK, (time_s,))


def test_what_pays_best_is_measured_first_and_what_does_not_pay_never() -> None:
    expected = ExpectedGain({_DEAR: 0.3, _CHEAP: 0.0001}, runtime_s=3600.0)
    points = [(Point(_CHEAP, _CHOICES), 0.5), (Point(_DEAR, _CHOICES), 0.5)]
    assert expected.worth_measuring(points, [])[0] == [1]
    # 0.0001 of an hour, 15% of it: 0.054 s.
    paying, reason = expected.worth_measuring(points[:1], [])
    assert paying == []
    assert "would cost 1 s and is expected to save 0.054 s" in reason
    assert ExpectedGain({_CHEAP: 0.01}, 3600.0).worth_measuring(points[:1], [])[0] == [0]


def test_what_was_measured_changes_what_is_expected() -> None:
    other = Scenario("alltoall", 2, 2, 4096)
    expected = ExpectedGain({other: 0.001, _CHEAP: 0.001}, runtime_s=3600.0)
    points = [(Point(other, _CHOICES), 0.3), (Point(_CHEAP, _CHOICES), 0.3)]
    fast = [sample(_DEAR, DEFAULT, 2.0), sample(_DEAR, Choice("a"), 1.0)]
    slow = [sample(_DEAR, DEFAULT, 1.0), sample(_DEAR, Choice("a"), 2.0)]
    assert gains_of(fast) == {_DEAR: 0.5}
    assert gains_of(slow) == {_DEAR: 0.0}
    assert expected.worth_measuring(points, [])[0] == []
    # Of its own collective more is expected than of another, and of that more than before.
    assert expected.worth_measuring(points, fast)[0] == [0, 1]
    assert expected.worth_measuring(points, slow)[0] == []


def test_long_calls_make_a_measurement_dear() -> None:
    expected = ExpectedGain({_DEAR: 0.3}, 3600.0, {_DEAR: 1.0})
    assert expected.cost_s(Point(_DEAR, _CHOICES), 0.5) == pytest.approx(15 * 4 * 2)


def test_the_library_is_loaded_first_and_named_to_open_mpi() -> None:
    environment = preload_environment(Path("/l.so"), Path("/app.json"), {"LD_PRELOAD": "/other.so"})
    assert environment["LD_PRELOAD"] == "/other.so:/l.so"
    command = ["mpirun", "-n", "4", "./app"]
    assert preload_command(command, "mpich") == command
    assert preload_command(command, "openmpi")[:5] == ["mpirun", "-x", "LD_PRELOAD", "-x", "COLLTUNE_PROFILE"]


def test_calls_that_do_not_block_are_counted_and_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def call(function: str, form: str, where: str = _WHERE) -> str:
        text = _CALL.format(where=where, function=function, calls=400, time_ns=4000, sum=409600)
        return text.replace("form=blocking", f"form={form}")

    alone = "size=1 remote_size=0 nodes=1 ppn=1 even=1"
    write(
        tmp_path / "app.json.all",
        _JOB.format("all", 0),
        f"communicators {_WHERE} count=8",
        call("allreduce", "nonblocking"),
        call("allreduce", "persistent"),
        call("bcast", "blocking"),
        call("bcast", "nonblocking", alone),
        call("scan", "nonblocking"),
    )
    profile = read_parts(part_files(tmp_path / "app.json"))
    assert tunable_by_name(profile) == {"iallreduce": 200.0}
    assert tunable_by_name(profile, ["ibcast"]) == {}
    print_profile(profile, tmp_path / "app.json", brief=True)
    told = " ".join(capsys.readouterr().out.split())
    assert "iallreduce (200 calls): what the application sees of them is in MPI_Wait" in told
    assert "colltune tune iallreduce" in told
