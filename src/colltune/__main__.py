"""`python -m colltune`."""

from colltune.cli import main

main()
