"""The summaries that replace removed exchanges."""
