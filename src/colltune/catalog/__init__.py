"""What each MPI library can run, per version: algorithms, parameters, preconditions."""

from colltune.catalog.catalogue import Catalogue
from colltune.catalog.entries import NO_DEVICE, Algorithm, CollectiveEntry, Kind, Need, Parameter
from colltune.catalog.read import load

__all__ = ["NO_DEVICE", "Algorithm", "Catalogue", "CollectiveEntry", "Kind", "Need", "Parameter", "load"]
