"""Learns about deployments from answers and refusals: attempts of running requests, statistics, and their storage."""
