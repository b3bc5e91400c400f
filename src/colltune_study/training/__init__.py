"""Models of other clusters, from their tables, whose names of algorithms are described from here on."""

from colltune.traffic import describe_also
from colltune_study.training.recorded_algorithms import RECORDED

describe_also(RECORDED)
