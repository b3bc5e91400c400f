"""The use cases, one module each. The command line and the Python interface call these."""
