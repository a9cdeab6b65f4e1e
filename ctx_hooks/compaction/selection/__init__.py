"""Selection of the older exchanges and segments to keep: a knapsack by value per token."""
