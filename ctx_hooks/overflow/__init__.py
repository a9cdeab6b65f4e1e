"""Overflow: is it one, how small must the next attempt be, and what does the final error say."""
