"""Tables of measurements that others recorded, read as grids."""
