"""Tables of measurements that others recorded, read as grids, and what launches do to their times."""
