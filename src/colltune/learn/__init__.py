"""Learners: what to measure next, and the models of what was measured. No learner measures anything itself."""
