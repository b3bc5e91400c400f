"""The commands of `colltune study`, one file each."""

from colltune.cli.entry import Entry

COMMANDS = {
    "collect": Entry("Measure every algorithm at every size, into a table", "colltune_study.cli.collect"),
    "evaluate": Entry("Compare strategies on recorded tables", "colltune_study.cli.evaluate"),
    "train": Entry("Learn from the tables of other clusters", "colltune_study.cli.train"),
}
