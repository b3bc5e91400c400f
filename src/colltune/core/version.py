"""The version of colltune."""

__version__ = "0.1.0"
