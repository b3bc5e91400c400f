"""What an exported file of thresholds says, read back."""

import re

from colltune.emit.thresholds import MODELS


def parse_thresholds(data: bytes) -> dict[str, tuple[int, ...]]:
    """The thresholds in a file of exports, by collective; a collective without any is left out."""
    text = data.decode("ascii", "replace")
    found = dict(re.findall(r"^export MPIR_CVAR_([A-Z_]+)=([0-9]{1,10})$", text, re.MULTILINE))
    return {
        name: tuple(
            int(found.get(variable, default)) for variable, default in zip(model.variables, model.defaults, strict=True)
        )
        for name, model in MODELS.items()
        if any(variable in found for variable in model.variables)
    }
