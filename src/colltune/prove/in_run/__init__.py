"""What a run of the user's own program shows of the rules."""
