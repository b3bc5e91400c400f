"""The wrappers of libcolltune.so are what their generator writes, and cover every collective of MPI."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

_SHIM = Path(__file__).resolve().parents[2] / "native" / "shim"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", _SHIM / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_committed_wrappers_are_the_generated_ones(generator: ModuleType, tmp_path: Path) -> None:
    for name in ("shim", "common"):
        (tmp_path / name).mkdir()
    generator.main(tmp_path / "shim")
    for name in ("shim/wrappers.c", "shim/real.h", "common/names.h"):
        assert (tmp_path / name).read_text() == (_SHIM.parent / name).read_text(), f"run {_SHIM / 'generate.py'}"


def test_every_form_of_every_collective_is_there(generator: ModuleType) -> None:
    names = {name for name, *_ in generator.variants()}
    # 17 collectives and 5 neighbourhood ones, in 3 forms and, but for the barrier, 2 widths.
    assert len(names) == 3 * (2 * 22 - 1)
    assert {"Alltoallv", "Alltoallw_c", "Ialltoallv_c", "Alltoallv_init_c", "Ineighbor_alltoallw", "Ibarrier"} <= names
