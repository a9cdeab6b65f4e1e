"""Recorded requests as the plugin would have sent them, by several policies side by side."""
