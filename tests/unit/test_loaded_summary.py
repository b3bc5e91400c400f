"""What MPICH says of the files that it loaded is read, and kept out of the application's output."""

import pytest

from colltune.prove.loaded import SummaryFilter

# MPICH 5.0.2 from PyPI, one rank, MPIR_CVAR_DEBUG_SUMMARY=1, with a file for the first of three trees.
_SUMMARY = b"""==== UCX netmod Capability ====
MPIDI_UCX_CONTEXT_ID_BITS: 16
MPIDI_UCX_RANK_BITS: 16
MPIDI_UCX_MAX_AM_EAGER_SZ: 8100
tag_bits: 30
===============================
==== Various sizes and limits ====
sizeof(MPIDI_per_vci_t): 128
==== collective selection ====
MPIR_CVAR_DEVICE_COLLECTIVES: percoll
MPIR: /tuned/mpich/general.json
MPID: MPIDI_coll_generic_json
MPID/shm: MPIDI_POSIX_coll_generic_json
num_vcis: 1
MPICH 5.0.2 -  - Fri Sep 25 20:45:26 UTC 2026
error checking    : enabled
QMPI              : disabled
debugger support  : disabled
thread level      : MPI_THREAD_MULTIPLE
thread CS         : per-vci
threadcomm        : enabled
==== data structure summary ====
sizeof(MPIR_Comm): 1832
sizeof(MPIR_Request): 520
sizeof(MPIR_Datatype): 280
================================
"""
_LOADED = {
    "MPIR": "/tuned/mpich/general.json",
    "MPID": "MPIDI_coll_generic_json",
    "MPID/shm": "MPIDI_POSIX_coll_generic_json",
}


@pytest.mark.parametrize("step", [1, 7, 1 << 20])
def test_the_summary_is_cut_out_of_the_output_however_it_arrives(step: int) -> None:
    head, tail = _SUMMARY.split(b"num_vcis", 1)
    output = b"tag_bits: 30\nbegun\n" + head + b"a line of the application\nnum_vcis" + tail + b"tag_bits: 31\nno end"
    one = SummaryFilter()
    passed = b"".join(one.feed(output[place : place + step]) for place in range(0, len(output), step)) + one.close()
    assert passed == b"tag_bits: 30\nbegun\na line of the application\ntag_bits: 31\nno end"
    assert one.loaded == [_LOADED]


def test_each_job_that_is_seen_is_told_apart() -> None:
    one = SummaryFilter()
    assert one.feed(_SUMMARY + b"between\n" + _SUMMARY) == b"between\n"
    assert one.loaded == [_LOADED, _LOADED]
