"""What profiles of some rank counts say of another: laws, what follows none, and what does not go together."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import log2, sqrt
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from colltune.core.errors import InputError
from colltune.profile.application_profile import Calls, Communicator, Profile, time_shares
from colltune.profile.extrapolate import extrapolate
from colltune.profile.profile_files import save_profile
from colltune.session.tuning.options import TuneOptions

LAWS: dict[str, Callable[[int], float]] = {
    "the same": lambda _p: 1.0,
    "p": float,
    "1/p": lambda p: 1 / p,
    "1/p^2": lambda p: p**-2.0,
    "sqrt p": sqrt,
    "1/sqrt p": lambda p: p**-0.5,
    "log p": log2,
}
KINDS = ("allgather", "allreduce", "alltoall", "bcast", "gather", "reduce", "scatter")


def call(where: Communicator, name: str, calls: float, least: float, most: float | None = None) -> Calls:
    made, top = round(calls * where.size), round(least if most is None else most)
    return Calls(where, name, "blocking", "", made, made * top, 1e-5 * made, round(least), (least + top) / 2, top)


def profile(ranks: int, calls: Sequence[Calls], nodes: int = 1) -> Profile:
    seen = tuple((where, 1.0) for where in sorted({one.communicator for one in calls}))
    command = ("mpiexec", "-n", str(ranks), "./app", "1000")
    return Profile(tuple(calls), seen, ranks, nodes, 2.0, ranks, command=command)


def whole(ranks: int, nodes: int = 1) -> Communicator:
    return Communicator(ranks, nodes, ranks // nodes)


def said(one: Calls) -> tuple[object, ...]:
    return one.communicator, one.collective, one.rank_calls, one.size_least, one.size_most


@st.composite
def programs(draw: st.DrawFn) -> dict[str, tuple[str, str, list[int]]]:
    """By collective: the law of its sizes, that of its calls, and its sizes on one rank (before the law)."""
    found = {}
    for name in draw(st.lists(st.sampled_from(KINDS), min_size=1, unique=True)):
        sizes = draw(st.lists(st.integers(4, 12), min_size=1, max_size=3, unique=True))
        laws = draw(st.sampled_from(sorted(LAWS))), draw(st.sampled_from(["the same", "p", "log p", "1/p"]))
        found[name] = (*laws, [1 << 2 * power for power in sizes])
    return found


def run(program: dict[str, tuple[str, str, list[int]]], ranks: int) -> Profile:
    calls = []
    for name, (sizes, made, before) in program.items():
        many = 256 * LAWS[made](ranks)
        calls += [call(whole(ranks), name, many, size * LAWS[sizes](ranks) * 4**9 // 4**3) for size in before]
    return profile(ranks, calls)


@given(programs(), st.permutations([4, 16, 64]))
def test_laws_are_followed_to_another_count(program: dict[str, tuple[str, str, list[int]]], counts: list[int]) -> None:
    """Whole powers of four: every law gives whole bytes at each of these counts."""
    found, text = extrapolate([run(program, ranks) for ranks in counts], 1, 256)
    assert sorted(map(said, found.calls)) == sorted(map(said, run(program, 256).calls))
    assert (found.ranks, found.shape) == (256, (1, 256))
    assert ", 0 left out, 0% of the time" in text
    assert set(time_shares(found)) == set(time_shares(run(program, 256)))


@given(st.lists(st.integers(64, 1 << 20), min_size=3, max_size=3), st.sampled_from(KINDS))
def test_a_call_without_a_law_is_left_out_and_named(sizes: list[int], name: str) -> None:
    by_ranks = dict(zip((4, 8, 16), sizes, strict=True))
    for law in LAWS.values():
        assume(any(abs(size / sizes[0] / (law(p) / law(4)) - 1) >= 0.2 for p, size in by_ranks.items()))
    known = [
        profile(p, [call(whole(p), "barrier", 100, 0), call(whole(p), name, 10, size)]) for p, size in by_ranks.items()
    ]
    found, text = extrapolate(known, 1, 32)
    assert [one.collective for one in found.calls] == ["barrier"]
    assert all(words in text for words in (f"{name} of ", "its size follows no law", ", 1 left out"))


@pytest.mark.parametrize(
    ("at_64", "at_128", "at_256", "at_1024"),
    [
        (8192, 4096, 2048, 512),  # FT, class A; class D and MPIFFT shrink alike
        (4, 4, 4, 4),  # IS; blocks of MPIRandomAccess stay alike
    ],
)
def test_the_sizes_of_tianhe_2_are_those_of_its_table(at_64: int, at_128: int, at_256: int, at_1024: int) -> None:
    sizes = {64: at_64, 128: at_128, 256: at_256}
    known = [profile(p, [call(whole(p, p // 16), "alltoall", 20, size)], p // 16) for p, size in sizes.items()]
    for some in (known[:2], known[1:], known):
        [one] = extrapolate(some, 64, 16)[0].calls
        assert said(one) == (Communicator(1024, 64, 16), "alltoall", 20 * 1024, at_1024, at_1024)


def test_two_counts_may_not_tell_laws_apart_and_a_third_does() -> None:
    """From 2 to 4 ranks a size that doubles may follow p or log p."""
    known = [profile(p, [call(whole(p), "bcast", 10, 512 * p), call(whole(p), "reduce", 9, 64)]) for p in (2, 4, 8)]
    found, text = extrapolate(known[:2], 1, 16)
    assert [one.collective for one in found.calls] == ["reduce"]
    assert "bcast of 2 KiB on 1 x 4 ranks (its size follows several laws" in text
    assert {one.size_most for one in extrapolate(known, 1, 16)[0].calls} == {8192, 64}
    # Nor is a number of calls taken that follows none.
    many = {2: 2, 4: 4, 8: 13}
    known = [profile(p, [call(whole(p), "barrier", 7, 0), call(whole(p), "bcast", n, 8)]) for p, n in many.items()]
    assert "bcast of 8 B on 1 x 8 ranks (how often is not known)" in extrapolate(known, 1, 16)[1]


def test_the_law_of_most_calls_is_believed_and_the_exact_one() -> None:
    """1 and 2 KiB become 512 B and 1 KiB: both have halved, and none of 1 KiB has stayed."""
    known = [profile(p, [call(whole(p), "bcast", 10, size // p) for size in (2048, 4096)]) for p in (2, 4)]
    found, _text = extrapolate(known, 1, 8)
    assert sorted(one.size_most for one in found.calls) == [256, 512]
    assert [one.size_mean for one in found.calls] == [one.size_most for one in found.calls]
    assert [one.own_bytes for one in found.calls] == [one.rank_calls * one.size_most for one in found.calls]
    # From 63 to 64 ranks the root of p grows by less than the few percent that are no other law.
    close = [profile(p, [call(whole(p), "bcast", 10, 4096)]) for p in (63, 64)]
    assert [said(one) for one in extrapolate(close, 1, 256)[0].calls] == [(whole(256), "bcast", 10 * 256, 4096, 4096)]


def test_blocks_are_cut_to_elements() -> None:
    """A thousand doubles, shared out: ranks have a block more or less."""
    known = [profile(p, [call(whole(p), "scatter", 5, 8000 // p // 8 * 8, -(-1000 // p) * 8)]) for p in (3, 6, 7)]
    [one] = extrapolate(known, 1, 12)[0].calls
    assert abs(one.size_least - 664) < 16
    assert abs(one.size_most - 672) < 16


def test_parts_of_the_job_grow_with_it_where_that_is_certain() -> None:
    def of(nodes: int) -> Profile:
        node, leaders = Communicator(4, 1, 4), Communicator(nodes, nodes, 1)
        half, across = Communicator(2 * nodes, nodes // 2, 4), Communicator(2 * nodes, nodes, 2, even=False)
        calls = [call(node, "bcast", 10 * nodes, 64), call(leaders, "reduce", 10, 64), call(half, "gather", 20, 64)]
        return profile(4 * nodes, [*calls, call(across, "scatter", 2, 64)], nodes)

    found, text = extrapolate([of(4), of(8)], 32, 4)
    wanted = [said(one) for one in of(32).calls if one.collective != "scatter"]
    assert sorted(map(said, found.calls)) == sorted(wanted)
    assert "scatter of 64 B on 16 on 8 ranks (where its ranks would lie is not known)" in text
    with pytest.raises(InputError, match="no call follows one law"):
        extrapolate([of(4), of(8)], 16, 8)  # a node of eight ranks was never seen


def test_a_profile_of_this_job_needs_no_law() -> None:
    one, other = (profile(p, [call(whole(p), "bcast", 1, p**3)]) for p in (2, 4))
    assert extrapolate([one, other], 1, 4) == (other, "")
    assert extrapolate([one], 1, 99) == (one, "")


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"ranks": 2}, "two of the profiles are of 2 ranks"),
        ({"command": ("mpiexec", "./other")}, r"of 'mpiexec -n 2 \./app 1000' and of 'mpiexec \./other'"),
        ({"threads_multiple": True}, "(threads)"),
        ({"ended": "SIGTERM"}, "ended by SIGTERM"),
        ({"calls": (call(whole(4), "bcast", 1, 64),) * 1001}, "1001 kinds of calls"),
    ],
)
def test_profiles_that_do_not_go_together_are_refused(change: dict[str, object], what: str) -> None:
    one, other = (profile(p, [call(whole(p), "bcast", 1, 64)]) for p in (2, 4))
    with pytest.raises(InputError, match=what) as caught:
        extrapolate([one, replace(other, **change)], 1, 8)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_the_application_is_compared_by_its_own_command_alone(tmp_path: Path) -> None:
    for p in (2, 4):
        save_profile(tmp_path / f"{p}.json", profile(p, [call(whole(p), "bcast", 1, 64)]))
    both = [tmp_path / "2.json", tmp_path / "4.json"]
    assert [one.ranks for one in TuneOptions.of([], {"profile": both}).application] == [2, 4]
    assert [one.ranks for one in TuneOptions.of([], {"profile": both[1]}).application] == [4]
    with pytest.raises(InputError, match="2 are given"):
        TuneOptions.of([], {"profile": both, "check": True})
