"""Four learners of MVAPICH2's tuning tables (colltune_study.research.labels): bench/labels.json, and importances."""

from colltune_study.research.labels import compare_learners
from harness import ROOT, write_figures

if __name__ == "__main__":
    figures, importances = compare_learners(ROOT / "benchmarks" / "data", 1000, print)
    write_figures("labels", figures)
    write_figures("labels_importances", importances)
