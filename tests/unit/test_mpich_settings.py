"""What the user and the site have set of MPICH goes before the rules, by whichever name it is set."""

from pathlib import Path

import pytest

from colltune.mpi.mpich_settings import overriding


@pytest.mark.parametrize(
    ("environment", "site", "found"),
    [
        ({}, "", ""),
        ({"MPIR_CVAR_BCAST_INTRA_ALGORITHM": "binomial"}, "", "MPIR_CVAR_BCAST_INTRA_ALGORITHM=binomial"),
        ({"MPICH_BCAST_INTRA_ALGORITHM": "binomial"}, "", "MPICH_BCAST_INTRA_ALGORITHM=binomial"),
        ({"MPIR_PARAM_BCAST_COMPOSITION": "1"}, "", "MPIR_PARAM_BCAST_COMPOSITION=1"),
        # Of two names MPIR_CVAR counts.
        ({"MPICH_BCAST_INTRA_ALGORITHM": "ring", "MPIR_CVAR_BCAST_INTRA_ALGORITHM": "auto"}, "", ""),
        ({"MPIR_CVAR_REDUCE_INTRA_ALGORITHM": "binomial", "MPIR_CVAR_BCAST_DEVICE_COLLECTIVE": "yes"}, "", ""),
        ({"MPIR_CVAR_DEVICE_COLLECTIVES": "all"}, "", "MPIR_CVAR_DEVICE_COLLECTIVES=all"),
        ({}, "# ours\n\nMPICH_BCAST_INTRA_ALGORITHM=ring\nno setting\n", "MPICH_BCAST_INTRA_ALGORITHM=ring (of SITE)"),
        # The site's file gives way to the environment, unless it says otherwise.
        ({"MPICH_BCAST_INTRA_ALGORITHM": "auto"}, "MPICH_BCAST_INTRA_ALGORITHM=ring\n", ""),
        (
            {"MPICH_BCAST_INTRA_ALGORITHM": "auto"},
            "MPICH_BCAST_INTRA_ALGORITHM:force=ring\n",
            "MPICH_BCAST_INTRA_ALGORITHM=ring (of SITE)",
        ),
        ({}, "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE=/a.json\n", ""),
        (
            {},
            "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE:force=/a.json\n",
            "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE=/a.json (of SITE)",
        ),
    ],
)
def test_what_goes_before_the_rules(environment: dict[str, str], site: str, found: str, tmp_path: Path) -> None:
    path = tmp_path / "mpich.conf"
    path.write_text(site)
    assert overriding(environment, ["bcast"], path) == [found.replace("SITE", str(path))][: bool(found)]
    assert overriding(environment, [], path) == []


def test_a_file_that_is_no_text_sets_nothing(tmp_path: Path) -> None:
    (tmp_path / "mpich.conf").write_bytes(b"\xff\xfeA=1\n")
    assert overriding({}, ["bcast"], tmp_path / "mpich.conf") == []
    assert overriding({}, ["bcast"], tmp_path / "none") == []
