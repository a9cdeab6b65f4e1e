"""Which older exchanges, and which of their segments, are kept: a knapsack by value per token."""
