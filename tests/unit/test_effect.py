"""What the ranks counted, in words."""

from pathlib import Path

import pytest

from colltune.core.choice import DEFAULT, Choice
from colltune.core.errors import InputError
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import Environment
from colltune.core.scenario import SizeBasis
from colltune.prove.in_run.matched_calls import read_effect

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


def test_where_none_met_a_rule_it_says_why(tmp_path: Path) -> None:
    file = write(tmp_path / "count.1", job(4, 1), _CALL.format("bcast", "blocking", 4, 4, 480, 0, 8, 64))
    text = read_effect([file]).text(_TUNED, RULES)
    assert "0 of 120 calls of bcast met a rule (they were on 1 x 4 ranks, 8 to 64 B" in text
    assert "it never called allreduce" in text
    assert "no call met a rule: rules for 1 x 2; this program ran 1 x 4 with MPI_THREAD_MULTIPLE" in text


def test_other_threads_than_those_of_the_proof_are_told(tmp_path: Path) -> None:
    file = write(tmp_path / "count.1", job(2, 1), _CALL.format("bcast", "blocking", 2, 2, 8, 8, 8, 8))
    text = read_effect([file]).text(_TUNED, RULES)
    assert "proven on 1 x 2, and this program ran 1 x 2 with MPI_THREAD_MULTIPLE" in text


def test_no_count_and_a_damaged_one(tmp_path: Path) -> None:
    assert "not counted" in read_effect([]).text(_TUNED, RULES)
    for text in ("", "colltune-count 1\njob ranks=2\n", "colltune-count 1\njob ranks=2\nend\n", "other\nend\n"):
        (tmp_path / "count.1").write_text(text)
        with pytest.raises(InputError, match="no count of this colltune"):
            read_effect([tmp_path / "count.1"])
