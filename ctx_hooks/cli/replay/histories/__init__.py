"""The readers of histories: one module for each kind, from rows to recorded requests."""
