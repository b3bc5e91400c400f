"""What other programs did to measurements, and the one sentence in which everybody says it.

Others' load is not noise that averages out: it is another machine, on which another algorithm may be best.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

# Set to ACCEPT it takes measurements as they come, on a machine that is never calm; everything then says so.
VARIABLE, ACCEPT = "COLLTUNE_BUSY", "accept"
# Of the time of all measurements, what may be disturbed before nothing is judged.
_BUSY = 0.5
WHAT_TO_DO = "Measure on idle nodes of your own"


class Load(NamedTuple):
    """What else ran while something was measured, on the node where it was worst; None: the system does not tell.

    Shares of the time: ``waited``: ranks could run, and programs that are not the job's had their processors;
    ``others``: of the processors that the ranks may use, what such programs took; ``stolen``: what a hypervisor gave to
    other machines; ``throttled``: a limit of the control group held the ranks; ``pressure``: anything on the node
    waited for a processor. ``switches``: how often a rank was made to leave its processor. ``node``: the position in
    the job of the node that was disturbed most.
    """

    waited: float | None = None
    others: float | None = None
    stolen: float | None = None
    throttled: float | None = None
    pressure: float | None = None
    switches: int | None = None
    node: int = 0

    @property
    def causes(self) -> list[str]:
        """Those of ``LIMITS`` that were exceeded, the worst first."""
        over = {name: (getattr(self, name) or 0.0) / limit for name, limit in LIMITS.items()}
        return sorted((name for name, times in over.items() if times > 1.0), key=lambda name: -over[name])

    @property
    def worst(self) -> float:
        """The greatest share over its limit."""
        return max((getattr(self, name) or 0.0) / limit for name, limit in LIMITS.items())

    @property
    def is_known(self) -> bool:
        """Whether it can be judged: by what others took, or by a limit that was exceeded whatever they took."""
        return self.others is not None or bool(self.causes)


# Above these a measurement is disturbed; docs/design/calm.md has what machines show.
LIMITS = {"waited": 0.05, "others": 0.1, "stolen": 0.05, "throttled": 0.01}
_CAUSES = {
    "waited": "other programs held the ranks' processors for {share:.0%} of the time",
    "others": "other programs took {share:.0%} of the processors",
    "stolen": "the hypervisor took {share:.0%} of the processors",
    "throttled": "a limit of the control group held the ranks for {share:.0%} of the time",
}


class Calmness(StrEnum):
    CALM = "calm"
    DISTURBED = "disturbed"  # some measurements, which were taken again or do not count
    BUSY = "busy"  # too many of them: nothing is judged
    ACCEPTED = "accepted"  # the user wanted it not to be judged
    UNKNOWN = "unknown"  # the system does not tell, or no launch lasted to its end


@dataclass(frozen=True, slots=True)
class Disturbance:
    """Of ``measured`` measurements, each time that one was taken again among them, those that others ``disturbed``.

    ``disturbed_share``: these, of the time of all: what is disturbed takes longer.
    ``cause``: the name in ``LIMITS`` of what disturbed most of them, and ``share`` its mean. ``node``: where.
    ``judged``: False where the user accepted it; ``waited_s``: how long nothing was measured, in the hope of calm.
    ``untold``: launches that ended in good order, of which the system told nothing. ``proven``: the proof was calm
    enough to prove something, whatever the other measurements were.
    """

    judged: bool = True
    measured: int = 0
    disturbed: int = 0
    cause: str = ""
    share: float = 0.0
    node: str = ""
    waited_s: float = 0.0
    disturbed_share: float = 0.0
    untold: int = 0
    proven: bool = False

    @property
    def state(self) -> Calmness:
        if not self.judged:
            return Calmness.ACCEPTED
        if not self.measured:
            return Calmness.UNKNOWN
        if self.disturbed_share > _BUSY and not self.proven:
            return Calmness.BUSY
        return Calmness.DISTURBED if self.disturbed else Calmness.CALM

    @property
    def is_busy(self) -> bool:
        """Whether too much was disturbed for anything to be judged."""
        return self.state is Calmness.BUSY

    @property
    def sentence(self) -> str:
        """What everybody says of it; "" of a calm machine."""
        of = f"{self.disturbed} of {self.measured} measurements ({self.disturbed_share:.0%} of their time)"
        match self.state:
            case Calmness.BUSY:
                return f"The machine was busy, so nothing is judged: in {of} {self._cause_text}. {WHAT_TO_DO}."
            case Calmness.DISTURBED:
                return f"In {of} {self._cause_text}; these were taken again or do not count."
            case Calmness.ACCEPTED:
                return f"Whether other programs disturbed the measurements was not judged ({VARIABLE}={ACCEPT})."
            case Calmness.UNKNOWN:
                why = "this system does not tell" if self.untold else "no launch was measured to its end"
                return f"Whether other programs disturbed the measurements is not known: {why}."
        return ""

    @property
    def remark(self) -> str:
        """In few words, what has to stand beside whatever is called proven."""
        remarks = {
            Calmness.BUSY: "the machine was busy",
            Calmness.ACCEPTED: "disturbance by others not judged",
            Calmness.UNKNOWN: "disturbance by others not known",
        }
        return remarks.get(self.state, "")

    @property
    def _cause_text(self) -> str:
        where = f" of {self.node}" if self.node and self.cause in ("others", "stolen") else ""
        return _CAUSES.get(self.cause, _CAUSES["others"]).format(share=self.share) + where


class Tally:
    """Counts loads, as they come, into a Disturbance."""

    def __init__(self, *, judged: bool = True) -> None:
        self.judged = judged
        self._times_s: list[float] = []
        self._causes: dict[str, list[_Disturbed]] = {}
        self.waited_s = 0.0
        self.untold = 0

    def add(self, load: Load | None, took_s: float) -> bool:
        """Whether a measurement with this load, of so many seconds, counts as disturbed."""
        if load is None or not load.is_known or not self.judged:
            return False
        self._times_s.append(took_s)
        for cause in load.causes[:1]:
            self._causes.setdefault(cause, []).append(_Disturbed(getattr(load, cause), load.node, took_s))
            return True
        return False

    @property
    def mark(self) -> tuple[int, dict[str, int]]:
        """Where the count stands: what is counted from here on is ``total(mark)``."""
        return len(self._times_s), {cause: len(some) for cause, some in self._causes.items()}

    def total(self, since: tuple[int, dict[str, int]] = (0, {}), names: Iterable[str] = ()) -> Disturbance:
        """``names``: of the nodes, by their position in the job."""
        known, before = since
        counted = {cause: some[before.get(cause, 0) :] for cause, some in self._causes.items()}
        cause = max(counted, key=lambda name: len(counted[name]), default="")
        worst = counted.get(cause, [])
        nodes, hosts = [record.node for record in worst], list(names)
        node = max(set(nodes), key=nodes.count, default=-1)
        times_s, lost_s = self._times_s[known:], sum(record.took_s for some in counted.values() for record in some)
        return Disturbance(
            self.judged,
            len(times_s),
            sum(map(len, counted.values())),
            cause if worst else "",
            round(sum(record.share for record in worst) / len(worst), 3) if worst else 0.0,
            hosts[node] if 0 <= node < len(hosts) and len(hosts) > 1 else "",
            round(self.waited_s, 1),
            round(lost_s / max(sum(times_s), 1e-9), 3),
            self.untold,
        )


class _Disturbed(NamedTuple):
    share: float
    node: int
    took_s: float
