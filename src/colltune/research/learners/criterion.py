"""When a learner has learnt enough."""

from collections.abc import Sequence
from itertools import pairwise


def flat(values: Sequence[float], share: float, steps: int) -> bool:
    """Whether each of the last ``steps`` changes of ``values`` was less than ``share`` of the greatest value.

    ACCLAiM (section V.B) compares the changes with a fixed 1e-10, which fits one output scaling and one forest size;
    a share of what the series itself has reached needs no such number. False with too few values.
    """
    if len(values) <= steps:
        return False
    limit = share * max(values)
    last = values[-steps - 1 :]
    return all(abs(after - before) <= limit for before, after in pairwise(last))
