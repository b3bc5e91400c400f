"""What is known before anything is measured: hardware features, models of other clusters, a prior."""
