"""Overflow: is it one, and how small must the next attempt be."""
