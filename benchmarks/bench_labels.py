"""Four learners of MVAPICH2's tuning tables (colltune_study.research.labels): bench/labels.json, and importances."""

import json
from pathlib import Path

from colltune_study.research.labels import compare_learners

if __name__ == "__main__":
    figures, importances = compare_learners(Path(__file__).parent / "data", 1000, print)
    Path("bench").mkdir(exist_ok=True)
    for name, values in (("labels", figures), ("labels_importances", importances)):
        Path("bench", f"{name}.json").write_text(json.dumps(values, indent=1) + "\n")
        print(json.dumps(values, indent=1))
