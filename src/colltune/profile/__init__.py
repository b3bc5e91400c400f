"""What an application calls, and how long it waits."""
