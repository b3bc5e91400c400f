"""The slides "Machine Learning Driven Auto-tuning for Non-uniform All-to-All Collectives": 52 and 68, as tables."""

from __future__ import annotations

import numpy as np

from bench_alltoallv import SEEDS, query, times_s
from colltune_study.research.alltoallv_models import STATISTICS, importances, plain_features, reduced_errors
from colltune_study.research.time_models import COMPARED, unseen_error
from make_alltoallv_table import TRAINING, load_table
from papers.study import Made, Study

# Absolute percentage of test error (slide 68).
_THEIRS = {"linear": 48.52, "lasso": 48.38, "ridge": 48.48, "tree": 2.22, "forest": 1.91, "mlp": 6.11}
# Block statistics of which the slides say that any is enough (slide 52).
_ENOUGH = ("average", "largest", "quartile_1", "quartile_3")


def slides_68(_study: Study) -> Made:
    """Test errors of six models of the time of an all-to-all."""
    uniform = [timing for timing in load_table() if timing.pattern.distribution == "uniform"]
    features, measured = plain_features([query(timing) for timing in uniform]), times_s(uniform)
    rows = []
    for name in COMPARED:
        errors = [100.0 * unseen_error(name, features, measured, seed) for seed in SEEDS]
        rows.append([name, f"{np.mean(errors):.2f}%", f"{min(errors):.2f}% to {max(errors):.2f}%", f"{_THEIRS[name]}%"])
    caption = (
        f"Mean of |predicted - measured| / measured on 20% of {len(uniform)} rows, by models that 70% trained and 10%"
        f" tuned; means of {len(SEEDS)} splits. Simulated fat tree, 256 to 4,096 ranks; the slides: Polaris, 32 to"
        " 2,048 ranks, block sizes in steps of 2 B. Neighbouring rows differ less there."
    )
    return Made("slides_68", "All-to-all slides, 68: six models", caption, ["model", "error", "splits", "theirs"], rows)


def slides_52(_study: Study) -> Made:
    """Which statistic of the block sizes a model needs."""
    mixed = [query(timing) for timing in load_table() if timing.shape == TRAINING[0]]
    measured = times_s([timing for timing in load_table() if timing.shape == TRAINING[0]])
    errors, matters = reduced_errors(mixed, measured, 0), importances(mixed, measured, 0)
    rows = [
        [name, f"{matters[name]:.3f}", f"{100 * errors[name]:.2f}%", "enough alone" if name in _ENOUGH else "removed"]
        for name in STATISTICS
    ]
    rows.append(["all", "", f"{100 * errors['all']:.2f}%", ""])
    caption = (
        "A forest of the time of an all-to-all on 256 simulated ranks, six distributions of blocks: by how much its"
        " error in log time grows where a statistic is shuffled, and its test error with that statistic alone. The"
        " slides: average, maximum and quartiles are equally important, and either is enough."
    )
    columns = ["statistic", "matters", "error with it alone", "the slides"]
    return Made("slides_52", "All-to-all slides, 52: sensitivity to block sizes", caption, columns, rows)
