"""Caches by content, deadlines, threads, and warnings that are logged once."""
