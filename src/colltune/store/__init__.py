"""What is kept on disk: journals of samples, tunings, the history of a directory, tables of measurements."""
