"""The proof of a claim on the job itself: comparisons, regions, verdicts."""
