"""What of a profile `tune alltoallv` has to measure."""

from dataclasses import replace

import pytest

from colltune.alltoallv.called import alltoallv_share, called_by
from colltune.alltoallv.setting import Shape
from colltune.core.errors import InputError
from colltune.profile.application_profile import Calls, Communicator, CountsPerRank, Profile

SIZES = [1 << power for power in range(2, 12)]
WORLD, ROWS = Communicator(16, 4, 4), Communicator(4, 4, 1)
ONE = Calls(WORLD, "alltoallv", "blocking", "none", 160, 1000, 4.0, 20, 24.0, 30)


def profile(*calls: Calls) -> Profile:
    return Profile(calls, ((WORLD, 1.0), (ROWS, 4.0)), 16, 4, 2.0, 16)


def test_parts_and_sizes_are_those_of_the_calls_with_room_for_the_busiest_rank() -> None:
    rows = replace(ONE, communicator=ROWS, collective="alltoallw", size_least=500, size_most=900)
    found = called_by(profile(ONE, rows), Shape(4, 4), SIZES)
    assert found.parts == (Shape(4, 1), Shape(4, 4))
    assert found.sizes == (16, 32, 64, 512, 1024, 2048)
    assert found.fills == (0, 1, 2, 3, 4)
    assert found.share == alltoallv_share(profile(ONE, rows)) == pytest.approx(8.0 / 32.0)


def test_classes_that_are_denser_than_the_calls_need_no_proof() -> None:
    """A quarter of the blocks for others has bytes; no rank has fewer than the mean of all."""
    sparse = replace(ONE, blocks=CountsPerRank(count=160, empty=122, total_bytes=4000))
    assert called_by(profile(sparse), Shape(4, 4), SIZES).fills == (0, 1, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (replace(ONE, collective="alltoall"), "no blocking MPI_Alltoallv"),
        (replace(ONE, form="nonblocking"), "its nonblocking calls are the library's"),
        (replace(ONE, gaps=160), "its calls whose data have gaps are the library's"),
        (replace(ONE, communicator=Communicator(2, 2, 1)), "no blocking"),
        (replace(ONE, communicator=Communicator(32, 8, 4)), "a job of 4 x 4 can form"),
        (replace(ONE, communicator=Communicator(16, 4, 4, remote_size=4)), "no blocking"),
        (replace(ONE, size_least=1 << 20, size_most=1 << 20), "of 4 to 2048 B"),
    ],
)
def test_a_profile_without_calls_that_can_be_tuned_is_refused(call: Calls, message: str) -> None:
    with pytest.raises(InputError, match=message):
        called_by(profile(call), Shape(4, 4), SIZES)
