"""What `colltune study` does: for people who study how collectives are tuned. The distribution is colltune-study.

import colltune_study

colltune_study.collect("bcast", "data.parquet", budget="1m")
colltune_study.evaluate("data.parquet").runs
"""

from colltune_study.api import collect as collect
from colltune_study.api import evaluate as evaluate
from colltune_study.api import train as train
from colltune_study.api import tune as tune
