"""What the ranks counted, what the library says that it loaded, and what is told to ranks."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from colltune.core.errors import InputError
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import DEFAULT, Choice, Environment, SizeBasis
from colltune.deploy.applied import AppliedTuning, put_in_force
from colltune.prove.in_run.matched_calls import read_effect
from colltune.prove.loaded import SummaryFilter
from colltune.store.tuning import Tuning

_TUNED = Environment("mpich", "5.0.2", "b", "m", 1, 2, "single")
_CALL = "call function={} form={} size={} remote_size=0 nodes=1 ppn={} even=1 calls={} met={} least={} most={}"


def rules(collective: str) -> RuleSet:
    return RuleSet(
        collective, SizeBasis.MESSAGE, (Rule(2, None, None, Choice("ring")), Rule(None, None, None, DEFAULT))
    )


RULES = {name: rules(name) for name in ("allreduce", "bcast")} | {"reduce": RuleSet.always("reduce", SizeBasis.MESSAGE)}


def write(path: Path, job: str, *calls: str) -> Path:
    path.write_text("\n".join(["colltune-count 1", job, *calls, "end"]) + "\n")
    return path


def job(ranks: int, multiple: int = 0) -> str:
    return f"job ranks={ranks} nodes=1 threads_multiple={multiple} live=0 lost=0"


def test_calls_of_several_jobs_are_added_up(tmp_path: Path) -> None:
    one = write(tmp_path / "count.1", job(2), _CALL.format("bcast", "blocking", 2, 2, 20, 20, 8, 8))
    two = write(
        tmp_path / "count.2",
        job(4),
        _CALL.format("bcast", "blocking", 4, 4, 40, 0, 8, 64),
        _CALL.format("allreduce", "nonblocking", 4, 4, 12, 0, 0, 0),
    )
    effect = read_effect([one, two])
    text = effect.text(_TUNED, RULES)
    assert effect.met == 10
    assert "10 of 20 calls of bcast met a rule" in text
    assert "3 calls of allreduce were non-blocking or persistent" in text
    assert "reduce" not in text.replace("allreduce", "")


def test_calls_that_do_not_block_are_held_against_rules_of_their_own(tmp_path: Path) -> None:
    file = write(
        tmp_path / "count.1",
        job(4),
        _CALL.format("bcast", "blocking", 4, 4, 480, 0, 8, 64),
        _CALL.format("bcast", "nonblocking", 4, 4, 40, 8, 8, 64),
        _CALL.format("bcast", "persistent", 4, 4, 4, 0, 8, 64),
    )
    text = read_effect([file]).text(_TUNED, {"ibcast": rules("ibcast"), "iallreduce": rules("iallreduce")})
    assert text == "2 of 11 calls of ibcast met a rule; it never called iallreduce"
    both = read_effect([file]).text(_TUNED, {"ibcast": rules("ibcast"), "bcast": rules("bcast")})
    assert "0 of 120 calls of bcast met a rule (they were on 1 x 4 ranks, 8 to 64 B" in both
    assert "2 of 11 calls of ibcast met a rule" in both
    assert "which no rule is for" not in both


def test_where_none_met_a_rule_it_says_why_and_other_threads_than_those_of_the_proof_are_told(tmp_path: Path) -> None:
    file = write(tmp_path / "count.1", job(4, 1), _CALL.format("bcast", "blocking", 4, 4, 480, 0, 8, 64))
    text = read_effect([file]).text(_TUNED, RULES)
    assert "0 of 120 calls of bcast met a rule (they were on 1 x 4 ranks, 8 to 64 B" in text
    assert "it never called allreduce" in text
    assert "no call met a rule: rules for 1 x 2; this program ran 1 x 4 with MPI_THREAD_MULTIPLE" in text
    write(file, job(2, 1), _CALL.format("bcast", "blocking", 2, 2, 8, 8, 8, 8))
    told = "proven on 1 x 2, and this program ran 1 x 2 with MPI_THREAD_MULTIPLE"
    assert told in read_effect([file]).text(_TUNED, RULES)


def test_no_count_and_a_damaged_one(tmp_path: Path) -> None:
    assert "not counted" in read_effect([]).text(_TUNED, RULES)
    for text in ("", "colltune-count 1\njob ranks=2\n", "colltune-count 1\njob ranks=2\nend\n", "other\nend\n"):
        (tmp_path / "count.1").write_text(text)
        with pytest.raises(InputError, match="no count of this colltune"):
            read_effect([tmp_path / "count.1"])


# MPICH 5.0.2 from PyPI, one rank, MPIR_CVAR_DEBUG_SUMMARY=1, with a file for the first of three trees; shortened.
_SUMMARY = b"""==== UCX netmod Capability ====
MPIDI_UCX_CONTEXT_ID_BITS: 16
tag_bits: 30
===============================
==== Various sizes and limits ====
sizeof(MPIDI_per_vci_t): 128
==== collective selection ====
MPIR_CVAR_DEVICE_COLLECTIVES: percoll
MPIR: /tuned/mpich/general.json
MPID: MPIDI_coll_generic_json
MPID/shm: MPIDI_POSIX_coll_generic_json
num_vcis: 1
MPICH 5.0.2 -  - Fri Sep 25 20:45:26 UTC 2026
error checking    : enabled
QMPI              : disabled
debugger support  : disabled
thread level      : MPI_THREAD_MULTIPLE
thread CS         : per-vci
threadcomm        : enabled
==== data structure summary ====
sizeof(MPIR_Comm): 1832
sizeof(MPIR_Datatype): 280
================================
"""
_LOADED = {
    "MPIR": "/tuned/mpich/general.json",
    "MPID": "MPIDI_coll_generic_json",
    "MPID/shm": "MPIDI_POSIX_coll_generic_json",
}


@pytest.mark.parametrize("step", [1, 7, 1 << 20])
def test_the_summary_is_cut_out_of_the_output_however_it_arrives(step: int) -> None:
    head, tail = _SUMMARY.split(b"num_vcis", 1)
    output = b"tag_bits: 30\nbegun\n" + head + b"a line of the application\nnum_vcis" + tail + b"tag_bits: 31\nno end"
    one = SummaryFilter()
    passed = b"".join(one.feed(output[place : place + step]) for place in range(0, len(output), step)) + one.close()
    assert passed == b"tag_bits: 30\nbegun\na line of the application\ntag_bits: 31\nno end"
    assert one.loaded == [_LOADED]


def test_each_job_that_is_seen_is_told_apart() -> None:
    one = SummaryFilter()
    assert one.feed(_SUMMARY + b"between\n" + _SUMMARY) == b"between\n"
    assert one.loaded == [_LOADED, _LOADED]


_RULES = RuleSet("bcast", SizeBasis.MESSAGE, (Rule(None, None, None, Choice("binomial")),))


def in_force(mpi: str, around: Mapping[str, str], place: Path) -> AppliedTuning:
    environment = Environment(mpi, "5.0.2", "0", "here", 2, 4, "single", {})
    variables = {"TUNED_FILE": "{directory}/rules"}
    return put_in_force(place, Tuning(environment, {"bcast": _RULES}, {}, variables), around)


def test_ranks_get_the_tuning_and_what_is_told_besides(tmp_path: Path) -> None:
    force = in_force("mpich", {"HOME": "/home/me", "TUNED_FILE": "mine"}, tmp_path)
    file = f"{tmp_path.resolve()}/rules"
    assert force.environment == {"HOME": "/home/me", "TUNED_FILE": file}
    more = force.exporting({"MORE": "1"})
    assert more.environment == {"HOME": "/home/me", "TUNED_FILE": file, "MORE": "1"}
    assert more.variables == force.variables == {"TUNED_FILE": file}


@pytest.mark.parametrize(("mpi", "words"), [("mpich", []), ("openmpi", ["-x", "TUNED_FILE", "-x", "MORE"])])
def test_open_mpi_is_told_what_to_hand_on(
    mpi: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the mpiexec of PATH; where it has none, as on a machine without an MPI, by that beside the running Python."""
    mpiexec = tmp_path / "mpiexec"
    mpiexec.touch(mode=0o755)
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    for path, program in ((str(tmp_path), "mpiexec"), ("/nowhere", str(mpiexec))):
        force = in_force(mpi, {"PATH": path}, tmp_path).exporting({"MORE": "1"})
        assert force.command(["mpiexec", "-n", "4", "./app"]) == [program, *words, "-n", "4", "./app"]
        assert force.command(["./app"]) == ["./app"]


def test_a_file_of_open_mpi_on_another_count_of_nodes_is_an_obstacle(tmp_path: Path) -> None:
    found = in_force("openmpi", {"PATH": ""}, tmp_path).obstacles(["mpiexec", "-n", "4", "./app"])
    assert any("tuned on 2 nodes, and this job has 1" in text for text in found)
    assert in_force("mpich", {"PATH": ""}, tmp_path).obstacles(["mpiexec", "-n", "4", "./app"]) == []


@pytest.mark.parametrize("command", ["", "mpirun --hostfile hosts -n 8 ./app", "mpirun -n 8 -npernode 4 ./app"])
def test_nothing_is_said_of_the_nodes_where_nobody_knows_them_or_they_fit(command: str, tmp_path: Path) -> None:
    assert in_force("openmpi", {"PATH": ""}, tmp_path).obstacles(command.split()) == []


def test_the_files_of_a_module_do_not_decide_the_calls_by_default_of_the_live_selector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def live(tuning: Tuning, way: str, around: Mapping[str, str], _mpicc: object) -> Tuning:
        assert (way, "TUNED_FILE" in around) == ("live", False)
        return replace(tuning, variables={"LD_PRELOAD": "/live.so", "COLLTUNE_SELECT": "{directory}/live"})

    monkeypatch.setattr("colltune.deploy.live_selector.in_force_via", live)
    environment = Environment("mpich", "5.0.2", "0", "here", 2, 4, "single", {})
    tuning = Tuning(environment, {"bcast": _RULES}, {}, {"TUNED_FILE": "{directory}/rules"})
    force = put_in_force(tmp_path, tuning, {"HOME": "/home/me", "TUNED_FILE": "of a module"}, "live")
    assert force.environment.keys() == {"HOME", "LD_PRELOAD", "COLLTUNE_SELECT"}
