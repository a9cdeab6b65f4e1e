"""The neutral, frozen model of a conversation, its inseparable exchanges, and the parts that no step may touch."""
