"""`colltune report A --diff B`: where two tunings decide differently."""

from pathlib import Path


def show_difference(tuned: Path, other: Path) -> bool:
    """Says where the decisions of two tunings differ, and whether they do nowhere."""
    from colltune.cli.terminal import make_console
    from colltune.report.diff_text import decisions_table, environments_table
    from colltune.session.diff import diff as run_diff

    found, names = run_diff(tuned, other), (str(tuned), str(other))
    console = make_console()
    if found.environments:
        console.print(environments_table(found.environments, names))
        console.print()
    for collective, number in found.untuned.items():
        console.print(f"{collective} was tuned in {names[number - 1]} only; elsewhere it is left to the default.")
    for collective in found.apart:
        console.print(f"{collective} cannot be compared: its rules compare different sizes in the two.")
    if found.decisions:
        console.print(decisions_table(found.decisions, names))
    if found.same:
        console.print("The same decisions.")
    return found.same
