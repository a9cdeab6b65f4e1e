"""From a conversation and a budget to a smaller conversation."""
