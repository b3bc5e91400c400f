"""Whether tuning can pay: the time in collectives that an algorithm can change, and what of it may be saved."""

from __future__ import annotations

from dataclasses import dataclass

from colltune.profile.application import Profile

# Published gains on single collectives reach from nothing to several times; half of the time is a generous bound.
HEADROOM = 0.5


@dataclass(frozen=True, slots=True)
class Benefit:
    """Shares of the run's time over all ranks. ``bound``: what tuning can save at the very most."""

    collectives: float
    waiting: float
    tunable: float
    bound: float

    def text(self) -> str:
        """One or two sentences for the user."""
        if self.tunable < 0.01:
            return (
                f"Tuning cannot pay: the collectives that it reaches take {self.tunable:.1%} of the time, "
                "waiting for late ranks not counted."
            )
        longest = f"at most {self.bound:.1%} of the run, if the right algorithms take half of the time"
        if self.waiting > self.tunable:
            longest += "; more is lost by ranks that come late, which is a matter of load balance, not of tuning"
        return f"Tuning can save {longest}."


def benefit_of(profile: Profile, headroom: float = HEADROOM) -> Benefit:
    """``headroom``: the share of a collective's own time that the best algorithm may save."""
    whole = max(profile.core_s, 1e-12)
    tunable = sum(one.own_time_s for one, _ in profile.tunable()) / whole
    return Benefit(
        collectives=profile.collective_s / whole,
        waiting=sum(one.waiting_s or 0.0 for one in profile.calls) / whole,
        tunable=tunable,
        bound=tunable * headroom,
    )
