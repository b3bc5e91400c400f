"""What the user and the site have set of MPICH goes before the rules, by whichever name it is set."""

from pathlib import Path

import pytest

from colltune.mpi.mpich_settings import overriding

OWN = "MPICH_BCAST_INTRA_ALGORITHM"
JSON = "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE"


@pytest.mark.parametrize(
    ("environment", "site", "found"),
    [
        ({}, "", ""),
        ({"MPIR_CVAR_BCAST_INTRA_ALGORITHM": "binomial"}, "", "MPIR_CVAR_BCAST_INTRA_ALGORITHM=binomial"),
        ({OWN: "binomial"}, "", f"{OWN}=binomial"),
        ({"MPIR_PARAM_BCAST_COMPOSITION": "1"}, "", "MPIR_PARAM_BCAST_COMPOSITION=1"),
        # Of two names MPIR_CVAR counts.
        ({OWN: "ring", "MPIR_CVAR_BCAST_INTRA_ALGORITHM": "auto"}, "", ""),
        ({"MPIR_CVAR_REDUCE_INTRA_ALGORITHM": "binomial", "MPIR_CVAR_BCAST_DEVICE_COLLECTIVE": "yes"}, "", ""),
        ({"MPIR_CVAR_DEVICE_COLLECTIVES": "all"}, "", "MPIR_CVAR_DEVICE_COLLECTIVES=all"),
        ({}, f"# ours\n\n{OWN}=ring\nno setting\n", f"{OWN}=ring (of SITE)"),
        # The site's file gives way to the environment, unless it says otherwise.
        ({OWN: "auto"}, f"{OWN}=ring\n", ""),
        ({OWN: "auto"}, f"{OWN}:force=ring\n", f"{OWN}=ring (of SITE)"),
        ({}, f"{JSON}=/a.json\n", ""),
        ({}, f"{JSON}:force=/a.json\n", f"{JSON}=/a.json (of SITE)"),
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
