"""Which older exchanges, and which of their segments, are worth their tokens."""
