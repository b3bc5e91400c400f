"""Our own simulator of the non-uniform all-to-all: times that can be reckoned by hand."""

import shutil
from pathlib import Path

import pytest

from alltoallv_simulators import MESSAGE_S, NETWORKS, Pattern, Timing, compile_cluster, simulate_own
from bench_alltoallv import figures_of_all
from colltune.alltoallv.setting import LIBRARY, Setting, Shape
from colltune.core.errors import InputError

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
_SMALL = Pattern("constant", 8)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_cluster(tmp_path_factory.mktemp("cluster"))


def _times(
    program: Path, shape: Shape, *settings: Setting, pattern: Pattern = _SMALL, network: str = NETWORKS[0]
) -> list[Timing]:
    return list(simulate_own(program, shape, [(setting, pattern) for setting in settings], network=network))


@pytest.mark.parametrize(("network", "message_s"), [("fattree", MESSAGE_S), ("dragonfly", 0.4e-6), ("torus", 0.8e-6)])
def test_spread_out_of_small_blocks_takes_cpu_time_for_each_message(
    program: Path, network: str, message_s: float
) -> None:
    for timing in _times(program, Shape(8, 4), LIBRARY, Setting("linear"), network=network):
        assert timing.time_s == pytest.approx(2 * 31 * message_s, rel=0.1)


@pytest.mark.parametrize(("network", "link"), [("fattree", 12.5e9), ("dragonfly", 25e9), ("torus", 6.75e9)])
def test_two_nodes_exchange_at_the_speed_of_a_link(program: Path, network: str, link: float) -> None:
    large = Pattern("constant", 1_000_000)
    (timing,) = _times(program, Shape(2, 4), Setting("linear"), pattern=large, network=network)
    own_block_s = 1e6 * 0.15e-9
    assert timing.time_s == pytest.approx(own_block_s + 4 * 4 * 1e6 / link, rel=0.02)


@pytest.mark.parametrize("network", NETWORKS)
def test_forwarding_pays_for_small_blocks_and_not_for_large_ones(program: Path, network: str) -> None:
    bruck, linear = Setting("parata", 2), Setting("linear")
    small = _times(program, Shape(32, 4), bruck, linear, network=network)
    large = _times(program, Shape(32, 4), bruck, linear, pattern=Pattern("constant", 8192), network=network)
    assert small[0].time_s < small[1].time_s / 2
    assert large[0].time_s > large[1].time_s


@pytest.mark.parametrize("shape", [Shape(1, 5), Shape(3, 1), Shape(5, 3), Shape(17, 2)])
def test_every_algorithm_ends_on_any_number_of_ranks(program: Path, shape: Shape) -> None:
    settings = [LIBRARY, Setting("linear", 0, 3), Setting("parata", 3, 1)]
    settings += [Setting("hieata", 2, 2)]
    for kind in ("uniform", "sparse", "skewed"):
        timings = _times(program, shape, *settings, pattern=Pattern(kind, 9000))
        assert len(timings) == len(settings)
        assert all(timing.time_s > 0 for timing in timings)


def test_the_same_seed_gives_the_same_times(program: Path) -> None:
    first, second = (_times(program, Shape(6, 3), Setting("hieata", 2)) for _ in range(2))
    assert first == second


def test_a_compiler_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no-such-cc cannot be run"):
        compile_cluster(tmp_path, "no-such-cc")


def test_a_figure_of_all_networks_is_that_of_the_worst() -> None:
    found = {
        "torus": {"speedup_median": 3.0, "model_regret": 0.01, "model_regret_worst": 0.2},
        "dragonfly": {"speedup_median": 5.0, "model_regret": 0.04, "model_regret_worst": 0.1},
    }
    figures = figures_of_all(found)
    assert figures["dragonfly_speedup_median"] == 5.0
    assert (figures["speedup_median"], figures["model_regret"], figures["model_regret_worst"]) == (3.0, 0.04, 0.2)
