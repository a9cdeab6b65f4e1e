"""How many tokens a conversation has, and how many it may have."""
