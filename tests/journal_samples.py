"""An environment and samples for journals that tests write."""

from colltune.core.sample import Choice, Environment, Sample, Scenario, Status

ENVIRONMENT = Environment("mpich", "5.0.2", "0f" * 32, "Example CPU, 8 cores", 4, 8, "single")


def example_samples(count: int, repetitions: int = 5) -> list[Sample]:
    """``count`` different samples; every fifth is a failure."""
    samples = []
    for index in range(count):
        scenario = Scenario("bcast", 1 + index % 4, 2, 8 * (index + 1))
        choice = Choice("tree", (("k", 2 + index), ("type", "kary")))
        if index % 5 == 4:
            samples.append(Sample(scenario, choice, Status.HUNG, cost_s=2.5, launch=1, detail="no answer in 2 s"))
            continue
        times_s = tuple((1.0 + index) * 1e-6 + 1e-9 * repetition for repetition in range(repetitions))
        samples.append(Sample(scenario, choice, Status.OK, times_s, 1e-6, None, 0.01, 0, index, 12.5 * index))
    return samples
