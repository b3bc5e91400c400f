from pathlib import Path

from colltune.core.sample import Environment
from colltune.store.journal import Journal
from journal_laws import JournalContract


class TestJournal(JournalContract):
    def create(self, path: Path, environment: Environment) -> Journal:
        return Journal.create(path, environment)

    def resume(self, path: Path, environment: Environment) -> Journal:
        return Journal.open(path, environment)
