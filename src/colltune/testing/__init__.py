"""Contract suites: the tests that every implementation of an interface inherits."""
