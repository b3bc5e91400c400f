"""Tables of measurements, written by whole collections."""
