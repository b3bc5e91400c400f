"""What is known of clusters where nothing was measured: models of others, costs, calibration, training."""
