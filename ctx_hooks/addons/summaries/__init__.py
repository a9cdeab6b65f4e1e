"""Summaries of removed exchanges, written by a model."""
