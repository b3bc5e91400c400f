"""The laws of a journal, as a test class to inherit."""

import abc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol, Self

import pytest

from colltune.core.errors import EnvironmentMismatchError, InputError
from colltune.core.sample import Choice, Environment, Sample, Scenario, Status

ENVIRONMENT = Environment("mpich", "5.0.2", "0f" * 32, "Example CPU, 8 cores", 4, 8, "single")


class JournalLike(Protocol):
    """What the laws need of a journal."""

    @property
    def samples(self) -> Sequence[Sample]: ...

    def append(self, samples: Sequence[Sample]) -> None: ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


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
        sample = Sample(scenario, choice, Status.OK, times_s, 1e-6, None, 0.01, 0, index, 12.5 * index)
        samples.append(sample)
    return samples


class JournalContract(abc.ABC):
    """Inherit, and say how the journal under test is begun and gone on with."""

    @abc.abstractmethod
    def create(self, path: Path, environment: Environment) -> JournalLike: ...

    @abc.abstractmethod
    def resume(self, path: Path, environment: Environment) -> JournalLike: ...

    def test_what_was_appended_is_replayed_in_order(self, tmp_path: Path) -> None:
        samples = example_samples(7)
        with self.create(tmp_path / "journal", ENVIRONMENT) as journal:
            journal.append(samples[:3])
            journal.append(samples[3:])
            assert list(journal.samples) == samples
        with self.resume(tmp_path / "journal", ENVIRONMENT) as journal:
            assert list(journal.samples) == samples

    def test_what_was_appended_is_there_without_a_close(self, tmp_path: Path) -> None:
        samples = example_samples(3)
        journal = self.create(tmp_path / "journal", ENVIRONMENT)
        journal.append(samples)
        (tmp_path / "copy").write_bytes((tmp_path / "journal").read_bytes())
        journal.close()
        with self.resume(tmp_path / "copy", ENVIRONMENT) as copy:
            assert list(copy.samples) == samples

    def test_a_journal_goes_on_after_being_resumed(self, tmp_path: Path) -> None:
        samples = example_samples(6)
        self.create(tmp_path / "journal", ENVIRONMENT).close()
        for sample in samples:
            with self.resume(tmp_path / "journal", ENVIRONMENT) as journal:
                journal.append([sample])
        with self.resume(tmp_path / "journal", ENVIRONMENT) as journal:
            assert list(journal.samples) == samples

    def test_a_journal_is_never_begun_over_another(self, tmp_path: Path) -> None:
        with self.create(tmp_path / "journal", ENVIRONMENT) as journal:
            journal.append(example_samples(2))
        with pytest.raises(InputError):
            self.create(tmp_path / "journal", ENVIRONMENT)
        with self.resume(tmp_path / "journal", ENVIRONMENT) as journal:
            assert list(journal.samples) == example_samples(2)

    def test_environments_do_not_mix(self, tmp_path: Path) -> None:
        self.create(tmp_path / "journal", ENVIRONMENT).close()
        for other in (replace(ENVIRONMENT, nodes=5), replace(ENVIRONMENT, mpi_build="00"), replace(ENVIRONMENT, ppn=1)):
            with pytest.raises(EnvironmentMismatchError):
                self.resume(tmp_path / "journal", other)

    def test_one_writer_at_a_time(self, tmp_path: Path) -> None:
        with self.create(tmp_path / "journal", ENVIRONMENT), pytest.raises(InputError):
            self.resume(tmp_path / "journal", ENVIRONMENT)
        self.resume(tmp_path / "journal", ENVIRONMENT).close()
