"""Host lists of Slurm and Flux."""

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colltune.core.errors import InputError
from colltune.core.hostlist import compress_hostlist, expand_hostlist, parse_counts


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("localhost", ["localhost"]),
        ("n1,n2", ["n1", "n2"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("n[08-11]", ["n08", "n09", "n10", "n11"]),
        ("n[8-11]", ["n8", "n9", "n10", "n11"]),
        ("n[098-101,7]", ["n098", "n099", "n100", "n101", "n7"]),
        ("a[1,3]b[1-2]", ["a1b1", "a1b2", "a3b1", "a3b2"]),
        ("r[1-2]n[09-10]-ib,login", ["r1n09-ib", "r1n10-ib", "r2n09-ib", "r2n10-ib", "login"]),
        ("n[1-2].site.org", ["n1.site.org", "n2.site.org"]),
        (" n[ 1 - 2 ] , m ", ["n1", "n2", "m"]),
        ("[1-2]", ["1", "2"]),
    ],
)
def test_expand(text: str, hosts: list[str]) -> None:
    assert expand_hostlist(text) == hosts


@pytest.mark.parametrize(
    "text", ["", ",", "n[", "n]", "n[]", "n[1-]", "n[3-1]", "n[a-b]", "n[1-2", "n[[1]]", "a,,b", "n[1,]", "a b"]
)
def test_what_is_no_host_list(text: str) -> None:
    with pytest.raises(InputError):
        expand_hostlist(text)


@pytest.mark.parametrize("text", ["n[0-999999999999]", "a[1-99999]b[1-99999]c[1-99999]", "n[" + "1" * 5000 + "-2]"])
def test_a_list_that_would_fill_the_memory_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        expand_hostlist(text)


def test_compression_is_short() -> None:
    assert compress_hostlist([f"nid{n:05}" for n in range(8, 12)]) == "nid[00008-00011]"
    assert compress_hostlist(["n1", "n2", "n4", "login", "n5"]) == "n[1-2,4],login,n5"
    assert compress_hostlist([]) == ""
    hosts = [f"x{n:04}" for n in range(10_000)]
    assert compress_hostlist(hosts) == "x[0000-9999]"


names = st.from_regex(r"[a-z0-9.\-]{1,3}[0-9]{0,3}[a-z.\-]{0,2}[0-9]{0,20}", fullmatch=True)
runs = st.builds(
    lambda stem, first, count, width: [f"{stem}{n:0{width}}" for n in range(first, first + count)],
    st.text("ab1-", min_size=1, max_size=3),
    st.integers(0, 1200),
    st.integers(1, 40),
    st.integers(0, 6),
)


@given(st.lists(names.map(lambda name: [name]) | runs, min_size=1, max_size=5).map(lambda lists: list(chain(*lists))))
def test_expanding_what_was_compressed_gives_the_same_hosts(hosts: list[str]) -> None:
    assert expand_hostlist(compress_hostlist(hosts)) == hosts


def test_a_host_that_is_none_is_refused() -> None:
    with pytest.raises(InputError):
        compress_hostlist(["n1", "a,b"])


@pytest.mark.parametrize(("text", "counts"), [("4", [4]), ("2(x3),1", [2, 2, 2, 1]), ("16(x2), 8", [16, 16, 8])])
def test_counts(text: str, counts: list[int]) -> None:
    assert parse_counts(text) == counts


@pytest.mark.parametrize("text", ["", "x", "2(x)", "2x3", "-1", "1(x9999999),1(x9999999)"])
def test_what_is_no_count(text: str) -> None:
    with pytest.raises(InputError):
        parse_counts(text)
