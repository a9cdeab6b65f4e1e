"""The neutral, frozen model of a conversation, what stands or falls together in it, and what no step may touch."""
