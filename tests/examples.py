"""How often a test that draws at random is repeated: seldom, and often with many examples of each property."""

import hypothesis

MANY = "many"  # the profile of `make test-all`


def examples(few: int, many: int) -> range:
    """Seeds from 0 on."""
    return range(many if hypothesis.settings.default is hypothesis.settings.get_profile(MANY) else few)
