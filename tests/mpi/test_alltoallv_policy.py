"""The selection protocol: every rank takes the same step in the same call, whatever the ranks' counts and order."""

import ctypes
from collections.abc import Iterator
from itertools import combinations, pairwise, product
from pathlib import Path
from random import Random
from typing import Any

import pytest

from alltoallv_lookup import find
from colltune.alltoallv.lookup_table import (
    FILLS,
    FIRST_CALL,
    AlltoallvRule,
    Setting,
    TableEntry,
    around,
    load_table,
    save_table,
)
from colltune.emit.live_rules import HEAD
from colltune.mpi.installation import Installation
from compiled import shared

_ROOT = Path(__file__).parents[2]
NOT, NOW, BESIDE = range(3)


@pytest.fixture(scope="module")
def protocol(mpi: Installation) -> ctypes.CDLL:
    parts = [_ROOT / "native" / name for name in ("include", "alltoallv", "common")]
    sources = [path for part in parts for path in sorted(part.glob("*.c"))]
    flags = [f"-I{part}" for part in parts]
    return ctypes.CDLL(str(shared("alltoallv_select.c", *flags, *sources, compiler=mpi.mpicc)))


def first_call(protocol: ctypes.CDLL, path: Path, ranks: int, ppn: int = 0) -> int:
    return load(protocol, path, ranks, ppn)[0]


def load(protocol: ctypes.CDLL, path: Path, ranks: int, ppn: int) -> tuple[int, ctypes.Array[ctypes.c_char], bytes]:
    """The call at which the rules take over, -1 if they are faulty; the table; why they are."""
    compact, why = ctypes.create_string_buffer(b"\xff" * 4096, 4096), ctypes.create_string_buffer(256)
    return protocol.load_table(str(path).encode(), ranks, ppn, compact, why), compact, why.value


class Rank:
    """A rank's copy of the protocol's state."""

    def __init__(self, protocol: ctypes.CDLL) -> None:
        self.protocol, self.state = protocol, ctypes.create_string_buffer(protocol.policy_bytes())
        protocol.ct_policy_start(self.state)

    def begin(self) -> tuple[int, int]:
        choice = ctypes.c_int(-9)
        return self.protocol.ct_policy_begin(self.state, ctypes.byref(choice)), choice.value

    def agreed(self, choice: int) -> None:
        self.protocol.ct_policy_agreed(self.state, choice)


def sequences(ranks: int, calls: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Every way in which each rank's own size class may change from call to call."""
    return product(product(range(2), repeat=ranks), repeat=calls)


def explore(protocol: ctypes.CDLL, local: tuple[tuple[int, ...], ...]) -> int:
    """Every order in which the ranks can get on with the calls; returns how many states were seen.

    A rank goes on alone where the call agrees on nothing. An agreement is a collective: it ends when all ranks are in
    their next one, which must be of the same call and of the same kind; if some are in one and others have made all
    calls, that is a deadlock. What a rank ran in a call must be what the others ran in it.
    """
    ranks, calls = len(local[0]), len(local)
    first = Rank(protocol).state.raw
    todo = [tuple((0, first, None, ()) for _ in range(ranks))]
    seen = set(todo)
    while todo:
        members = todo.pop()
        found = [_alone(protocol, members, rank, calls) for rank in range(ranks)]
        found.append(_together(protocol, members, local))
        following = {state for state in found if state is not None}
        if not following:
            assert all(done == calls and waiting is None for done, _, waiting, _ in members), members
        histories = [history for *_, history in members]
        for one, other in combinations(histories, 2):
            assert all(mine == theirs for mine, theirs in zip(one, other, strict=False)), histories
        todo += following - seen
        seen |= following
    return len(seen)


def _rank(protocol: ctypes.CDLL, state: bytes) -> Rank:
    made = Rank(protocol)
    ctypes.memmove(made.state, state, len(state))
    return made


def _alone(protocol: ctypes.CDLL, members: Any, rank: int, calls: int) -> Any:
    """The next call of one rank: finished at once, or waiting in an agreement. None: it cannot go on."""
    done, state, waiting, history = members[rank]
    if waiting is not None or done == calls:
        return None
    copy = _rank(protocol, state)
    agreement, choice = copy.begin()
    if agreement == NOT:
        after = (done + 1, copy.state.raw, None, (*history, choice))
    else:
        after = (done, copy.state.raw, (agreement, choice), history)
    return (*members[:rank], after, *members[rank + 1 :])


def _together(protocol: ctypes.CDLL, members: Any, local: tuple[tuple[int, ...], ...]) -> Any:
    """The end of an agreement that all ranks are in. None: some are not."""
    if any(waiting is None for _, _, waiting, _ in members):
        return None
    assert len({(done, waiting) for done, _, waiting, _ in members}) == 1, members
    after = []
    for done, state, (agreement, choice), history in members:
        copy, agreed = _rank(protocol, state), max(local[done])
        copy.agreed(agreed)
        after.append(
            (done + 1, copy.state.raw, None, (*history, agreed if agreement == NOW or choice == 0 else choice))
        )
    return tuple(after)


def test_every_sequence_of_counts_in_every_order_of_the_ranks(protocol: ctypes.CDLL) -> None:
    for ranks, calls in ((2, 5), (3, 3)):
        states = [explore(protocol, local) for local in sequences(ranks, calls)]
        assert max(states) > calls * ranks


def test_long_runs_of_many_ranks_agree(protocol: ctypes.CDLL) -> None:
    random = Random(1)
    members = [Rank(protocol) for _ in range(5)]
    for _ in range(3000):
        classes = [random.choice((0, 0, 0, 0, 0, 1)) for _ in members]
        begun = {member.begin() for member in members}
        assert len(begun) == 1
        if begun.pop()[0] != NOT:
            for member in members:
                member.agreed(max(classes))


def test_agreements_get_rare_while_counts_repeat_and_never_stop(protocol: ctypes.CDLL) -> None:
    calls = 20_000
    rank, agreements = Rank(protocol), []
    for call in range(1, calls + 1):
        agreement, _ = rank.begin()
        if agreement != NOT:
            rank.agreed(1)
            agreements.append(call)
    assert len(agreements) < 6 + calls // 683
    assert max(later - earlier for earlier, later in pairwise(agreements)) <= 1024


def test_a_program_with_phases_is_looked_at_again_soon(protocol: ctypes.CDLL) -> None:
    rank, ran = Rank(protocol), []
    for call in range(1, 6001):
        wanted = 1 + call // 100 % 2
        agreement, choice = rank.begin()
        if agreement != NOT:
            rank.agreed(wanted)
        ran.append((wanted if agreement == NOW else choice) == wanted)
    seen = ran[2000:]  # the first phases may pass between two agreements
    assert seen.count(True) > 0.85 * len(seen)


def test_sizes_that_swing_are_left_to_the_library_for_longer_and_longer(protocol: ctypes.CDLL) -> None:
    rank, ran = Rank(protocol), []
    for call in range(4000):
        agreement, choice = rank.begin()
        if agreement != NOT:
            rank.agreed(1 + call % 2)
        ran.append(0 if agreement == NOW else choice)
    assert ran[-1000:].count(0) > 900


def test_the_c_library_finds_in_a_table_what_python_finds(protocol: ctypes.CDLL, tmp_path: Path) -> None:
    rules = [
        AlltoallvRule(*around(64), Setting("parata", 4, 2, 256)),
        AlltoallvRule(*around(128), Setting("linear", 0, 8)),
    ]
    save_table(tmp_path / "t.rules", [TableEntry((5, 9), (2, 4), tuple(rules))], {"note": 'a {"quoted" name'})
    assert load_table(tmp_path / "t.rules")[0].rules == tuple(rules)
    assert first_call(protocol, tmp_path / "t.rules", 8) == FIRST_CALL
    call, compact, why = load(protocol, tmp_path / "t.rules", 8, 4)
    assert call == FIRST_CALL, why
    for average in (1, 47, 48, 63, 64, 95, 96, 127, 128, 191, 192, 5000):
        index = protocol.find_choice(compact, ctypes.c_int64(average * 7), ctypes.c_int64(0), 8)
        expected = find(load_table(tmp_path / "t.rules"), 8, 4, average)
        assert (index == 0) == (expected.algorithm == "library"), average


def test_each_entry_has_its_own_first_call(protocol: ctypes.CDLL, tmp_path: Path) -> None:
    rules = (AlltoallvRule(*around(64), Setting("linear")),)
    entries = [
        TableEntry((5, 9), (2, 4), rules, 77),
        TableEntry((10, 12), (2, 4), rules),
        TableEntry((13, 14), (1, 1), rules, 1),
    ]
    save_table(tmp_path / "t.rules", entries, {})
    assert load_table(tmp_path / "t.rules") == entries
    found = [first_call(protocol, tmp_path / "t.rules", ranks) for ranks in (4, 5, 9, 10, 13, 15)]
    assert found == [0, 77, 77, FIRST_CALL, FIRST_CALL, 0]
    assert first_call(protocol, tmp_path / "nonexistent", 5) == -1


def test_the_first_call_is_that_of_the_ranks_per_node_and_the_latest_where_nobody_knows_them(
    protocol: ctypes.CDLL, tmp_path: Path
) -> None:
    rules = (AlltoallvRule(*around(64), Setting("linear")),)
    entries = [
        TableEntry((16, 16), (4, 4), rules, 77),
        TableEntry((16, 16), (1, 1), rules, 500),
        TableEntry((16, 16), (8, 8), rules),
    ]
    save_table(tmp_path / "t.rules", entries, {})
    found = [first_call(protocol, tmp_path / "t.rules", 16, ppn) for ppn in (4, 1, 8, 2, 0)]
    assert found == [77, 500, FIRST_CALL, 0, 500]


@pytest.mark.parametrize("ranks", [3, 8, 16, 33])
def test_the_fill_of_a_call_has_the_class_that_the_table_means(
    protocol: ctypes.CDLL, tmp_path: Path, ranks: int
) -> None:
    rules = tuple(AlltoallvRule(0, 1 << 30, Setting("linear", 0, 1 + at), (at,)) for at in range(len(FILLS)))
    save_table(tmp_path / "t.rules", [TableEntry((ranks, ranks), (1, 64), rules)], {})
    call, compact, why = load(protocol, tmp_path / "t.rules", ranks, 4)
    assert call == FIRST_CALL, why
    most = 2 * (ranks - 1)
    for idle in range(most + 1):
        index = protocol.find_choice(compact, ctypes.c_int64(800), ctypes.c_int64(idle), ranks)
        assert index - 1 == next(at for at, share in enumerate(FILLS) if most - idle <= share * most), idle


def test_the_statistic_leaves_out_what_a_rank_keeps(protocol: ctypes.CDLL) -> None:
    def statistic(sent: list[int], received: list[int], rank: int) -> list[int]:
        found, array = (ctypes.c_int64 * 2)(), ctypes.c_int * len(sent)
        protocol.statistic_of(array(*sent), array(*received), rank, len(sent), found)
        return list(found)

    assert statistic([5, 9, 0, 7], [5, 0, 0, 4], 0) == [16, 3]
    assert statistic([0, 9, 0, 7], [0, 0, 0, 4], 0) == [16, 3]
    assert statistic([1, 0, 9, 0], [2, 0, 20, 30], 1) == [52, 1]
    assert statistic([0, 3, 0, 0], [0, 3, 0, 0], 1) == [0, 6]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "colltune-rules 3\n",
        '{"format": 1, "entries": []}',
        f"{HEAD}\nrule - - - -\n",
        f"{HEAD}\nrules bcast message\n",
        f"{HEAD}\nrules alltoallv message\n",
        f"{HEAD}\nrules alltoallv average\nrule - - - 0\n",
        f"{HEAD}\nrules alltoallv average\nrule - 9..3 - -\n",
        f"{HEAD}\nrules alltoallv average\nrule - - -\n",
        f"{HEAD}\nrules alltoallv average\nrule - - - - 4 5\n",
        f"{HEAD}\nrules alltoallv average\nrule - - - - 5\n",
        f"{HEAD}\nrules alltoallv average 0\n",
        f"{HEAD}\nchoice 1 - algorithm=linear\n",
        f"{HEAD}\nchoice 0 - algorithm=linear,radix=x\n",
        f"{HEAD}\nchoice 0 - radix=2\n",
    ],
)
def test_a_broken_table_leaves_everything_to_the_library(protocol: ctypes.CDLL, tmp_path: Path, text: str) -> None:
    (tmp_path / "t.rules").write_text(text)
    call, compact, _ = load(protocol, tmp_path / "t.rules", 8, 4)
    assert call == -1
    assert protocol.find_choice(compact, ctypes.c_int64(700), ctypes.c_int64(0), 8) == 0


def test_a_table_with_an_unknown_algorithm_is_refused_whole(protocol: ctypes.CDLL, tmp_path: Path) -> None:
    save_table(tmp_path / "t.rules", [TableEntry((8, 8), (4, 4), (AlltoallvRule(0, 99, Setting("later", 2)),))], {})
    call, _, why = load(protocol, tmp_path / "t.rules", 8, 4)
    assert call == -1
    assert why.startswith(b"line ")
