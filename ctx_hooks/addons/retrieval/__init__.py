"""Removed texts are archived, and a model gets them back by a tool whose calls no client sees."""
