"""Places measurements on the nodes of a job, so that those that run at the same time do not disturb each other."""
