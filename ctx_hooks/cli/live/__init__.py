"""Event files as they grow: a page, and lines for the terminal."""
