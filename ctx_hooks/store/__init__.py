"""The store that worker processes share: LiteLLM's Redis if it has one, else the memory of this process."""
