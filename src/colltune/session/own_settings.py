"""How settings of the user's own meet those of a tuning: said in one line, for nobody sees it from the outside."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from colltune.prove.loaded import overriding


def settings_line(environ: Mapping[str, str], collectives: Collection[str], others: Mapping[str, str | None]) -> str:
    """What of ``environ`` goes before the rules of ``collectives``, or gives way; "" for nothing.

    ``others``: what a variable is set to instead, None where it is left out.
    """
    told = []
    if before := overriding(environ, collectives):
        told.append(f"your own {', '.join(before)} goes before every rule; unset it to use them")
    changed = {name: value for name, value in others.items() if environ.get(name, value) != value}
    if replaced := sorted(name for name, value in changed.items() if value is not None):
        told.append(f"your own {', '.join(replaced)} gives way to the tuning's")
    if dropped := sorted(name for name, value in changed.items() if value is None):
        told.append(f"your own {', '.join(dropped)} is left out while this measures")
    return "; ".join(told)
