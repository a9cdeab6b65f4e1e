"""What worker processes share: LiteLLM's Redis if it has one, otherwise the memory of this process."""
