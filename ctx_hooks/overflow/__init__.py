"""Overflow: is it one, how small must the next attempt be, and what is the caller told in the end."""
