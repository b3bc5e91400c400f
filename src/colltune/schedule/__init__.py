"""Places measurements on the nodes of a job, so that those that run at once do not disturb each other."""
