"""What lint says of a file for coll/han is what Open MPI makes of it: the library lists the rules that it read."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.mpi
