"""Recognise overflows, and plan a smaller next attempt."""
