"""From a model and medians to decisions, and from decisions to the shortest rules."""
