"""A request on its way to a model: its fields, its size, and its target."""
