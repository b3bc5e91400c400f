"""The commands of `colltune study`, one file each."""

from colltune.core.extras import CommandEntry

COMMANDS = {
    "collect": CommandEntry("Measure every algorithm at every size, into a table", "colltune_study.cli.collect"),
    "evaluate": CommandEntry("Compare strategies on recorded tables", "colltune_study.cli.evaluate"),
    "tune": CommandEntry("Tune a simulated cluster", "colltune_study.cli.tune"),
    "train": CommandEntry("Learn from the tables of other clusters", "colltune_study.cli.train"),
}
