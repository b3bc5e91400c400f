"""Whether tuning can pay: the time in collectives that an algorithm can change, and what of it may be saved."""

from dataclasses import dataclass

from colltune.profile.application_profile import Profile

# Published gains on single collectives reach from nothing to several times; half of the time is a generous bound.
HEADROOM = 0.5


@dataclass(frozen=True, slots=True)
class Benefit:
    """Shares of the run's time over all ranks.

    ``tunable``: in collectives that tuning reaches, waiting not counted. ``bound``: what tuning can save at the very
    most; that is more than ``likely``, since ranks may be late because of the collective before.
    """

    collectives: float
    waiting: float
    tunable: float
    likely: float
    bound: float

    def text(self) -> str:
        """One or two sentences for the user."""
        if self.bound < 0.005:
            return f"Tuning cannot pay: it could save {self.bound:.1%} of the run at the very most."
        least = "; next to nothing" if self.likely < 0.005 else f"; {self.likely:.1%}"
        late = (
            f"{least} if ranks are late for reasons of their own, which is a matter of load balance, not of tuning"
            if self.bound > 1.1 * self.likely
            else ""
        )
        return (
            f"Tuning can save at most {self.bound:.1%} of the run, if the right algorithms take half of the time{late}."
        )


def benefit_of(profile: Profile, headroom: float = HEADROOM) -> Benefit:
    """``headroom``: the share of a collective's own time that the best algorithm may save."""
    whole = max(profile.core_s, 1e-12)
    tunable = sum(one.own_time_s for one, _ in profile.tunable()) / whole
    reached = sum(one.time_s for one, _ in profile.tunable()) / whole
    return Benefit(
        collectives=profile.collective_s / whole,
        waiting=sum(one.waiting_s or 0.0 for one in profile.calls) / whole,
        tunable=tunable,
        likely=tunable * headroom,
        bound=reached * headroom,
    )
