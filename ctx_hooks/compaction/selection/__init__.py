"""Selection of the older exchanges and segments to keep: by value per token."""
