"""Whether each choice gives right results: the conformance check."""
