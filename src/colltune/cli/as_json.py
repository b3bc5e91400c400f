"""What commands print for other programs: one JSON document, with the name and the version of its schema.

The schemas are in docs/reference/json.md. A number that is not known, or has no bound, is null.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from colltune.core.sample import Choice

SCHEMA = 2


def print_json(command: str, value: object) -> None:
    """Prints ``value``, a mapping or a dataclass, as the document of ``command``."""
    print(json.dumps({"command": command, "schema": SCHEMA, **plain(value)}, indent=1, allow_nan=False))


def plain(value: Any) -> Any:
    """``value`` as JSON holds it: dataclasses by their fields, choices as they are written everywhere."""
    if isinstance(value, Choice | Path):
        return str(value)
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
