"""Whether tuning can pay: the time in collectives that an algorithm can change, and what of it may be saved."""

from dataclasses import dataclass

from colltune.profile.application_profile import Profile

# Published gains on single collectives reach from nothing to several times; half of the time is a generous bound.
HEADROOM = 0.5


@dataclass(frozen=True, slots=True)
class Benefit:
    """Shares of the run's time over all ranks.

    ``tunable``: in collectives that tuning reaches. ``bound``: what tuning can save at the very most.
    """

    tunable: float
    bound: float

    def text(self) -> str:
        """A sentence for the user."""
        if self.bound < 0.005:
            return f"Tuning cannot pay: it could save {self.bound:.1%} of the run at the very most."
        return (
            f"Tuning can save at most {self.bound:.1%} of the run, if the right algorithms take half of the time; less"
            " where ranks wait for one that is late."
        )


def benefit_of(profile: Profile, headroom: float = HEADROOM) -> Benefit:
    """``headroom``: the share of a collective's time that the best algorithm may save."""
    tunable = sum(one.time_s for one, _ in profile.tunable()) / max(profile.core_s, 1e-12)
    return Benefit(tunable, tunable * headroom)
