"""How the time of one tuning is divided, and the least time that it takes."""

from dataclasses import dataclass

from colltune.core.units import format_count, format_duration

# Launches that a proof has at least.
FEWEST_PROOF_LAUNCHES = 3
# The files are compared with none over so many launches of each kind at least.
FEWEST_FILE_LAUNCHES = 3
# Of the time that no fixed cost takes, the share of the first measuring; the rest is for proving what it found.
MEASURING_SHARE = 0.33
# Of the time for the proof, what is kept for the comparison of the files.
_FILES_SHARE = 0.3
# Seconds: with less measuring, or a shorter proof beside its launches, nothing can be proven.
_LEAST_MEASURING_S, _LEAST_PROOF_S = 1.0, 2.0
# Models, files and the page, after all that runs MPI.
_CLOSING_S = 1.5
# Of the whole, what a measurement may take beyond the end of its stage before it is cut off.
_GRACE_SHARE = 0.04


@dataclass(frozen=True, slots=True)
class TimePlan:
    """The budget of one run of `colltune tune`, on a clock that reads ``began_s`` when the command began.

    ``set_up_s``: from then until the first launch is ready to measure. ``launch_s``: one launch of the agent, its end
    included. ``replay_s``: the conformance check at the end. ``proven`` False: no proof is asked for. ``files`` False:
    no library loads files, so that none are compared. ``runtime_s``: see `Budget`.
    """

    budget_s: float
    began_s: float
    set_up_s: float
    launch_s: float
    replay_s: float
    proven: bool = True
    files: bool = True
    runtime_s: float | None = None

    @property
    def launches(self) -> int:
        """The fewest launches, without the first one and the replay."""
        of_files = 2 * FEWEST_FILE_LAUNCHES if self.files else 0
        return FEWEST_PROOF_LAUNCHES + of_files if self.proven else 0

    @property
    def fixed_cost_s(self) -> float:
        """The least time that a tuning takes here, in seconds."""
        proof_s = self.launches * self.launch_s + (_LEAST_PROOF_S if self.proven else 0.0)
        return self.set_up_s + self.launch_s + _LEAST_MEASURING_S + proof_s + self.replay_s + _CLOSING_S

    @property
    def total_s(self) -> float:
        return max(self.budget_s, self.fixed_cost_s)

    @property
    def grace_s(self) -> float:
        """How long a measurement may outlast the end of its stage."""
        return _GRACE_SHARE * self.total_s

    @property
    def measured_by_s(self) -> float:
        """When the first measuring ends, on the clock."""
        share = MEASURING_SHARE if self.proven else 1.0
        free_s = self.total_s - self.fixed_cost_s
        return self.began_s + self.set_up_s + _LEAST_MEASURING_S + share * free_s

    @property
    def proven_by_s(self) -> float:
        """When everything is proven, the files included; the replay and the closing come after it."""
        return self.began_s + self.total_s - self.replay_s - _CLOSING_S

    def budget_for(self, rest_s: float) -> float:
        """About the budget, in seconds, that allows ``rest_s`` more of comparisons."""
        return self.total_s + rest_s / (1.0 - MEASURING_SHARE) / (1.0 - (_FILES_SHARE if self.files else 0.0))

    @property
    def extension(self) -> str | None:
        """A line for the user if the budget cannot be kept, else None."""
        if self.fixed_cost_s <= self.budget_s:
            return None
        what = "a tuning with proof" if self.proven else "a tuning"
        given = f"the budget of {format_duration(self.budget_s)}"
        if self.runtime_s is not None:
            given = f"the {format_duration(self.budget_s)} that tuning is expected to save"
        return (
            f"{what} takes at least {format_duration(self.fixed_cost_s)} here:"
            f" {format_count(self.launches + 1, 'launch', 'launches')} of {format_duration(self.launch_s)}, and"
            f" {format_duration(self.replay_s)} for the conformance check; "
            f"{given} {'is' if self.runtime_s is None else 'are'} extended to that"
        )
