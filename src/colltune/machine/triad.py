"""Measures the memory bandwidth of this node, in well under a second."""

import os
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from time import perf_counter

import numpy as np

_WORDS = 1 << 22  # 32 MiB an array and thread, three arrays: beyond the caches of a core
_REPETITIONS = 4
_MOST_THREADS = 64
_MOST_MEMORY_SHARE = 0.25


def measure_triad(threads: int | None = None) -> float | None:
    """10^9 bytes/s of a = b + c over all processors that this process may use; None where memory is too short.

    One addition in place of McCalpin's a = b + s c, which numpy would do in two passes. Three words are moved for each
    element, the write-allocate not counted, as STREAM counts; numpy lets go of the interpreter while it adds.
    """
    count = min(threads or len(os.sched_getaffinity(0)), _MOST_THREADS)
    needed = 3 * 8 * _WORDS * count
    if needed > _MOST_MEMORY_SHARE * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES"):
        return None
    barrier = Barrier(count)

    def run(_number: int) -> list[tuple[float, float]]:
        a, b, c = (np.full(_WORDS, value) for value in (0.0, 1.0, 2.0))
        spans = []
        for _ in range(_REPETITIONS):
            barrier.wait()
            started_s = perf_counter()
            np.add(b, c, out=a)
            spans.append((started_s, perf_counter()))
        return spans

    with ThreadPoolExecutor(count) as pool:
        spans = list(pool.map(run, range(count)))
    took_s = [max(s[i][1] for s in spans) - min(s[i][0] for s in spans) for i in range(1, _REPETITIONS)]
    return round(needed / min(took_s) / 1e9, 2)
