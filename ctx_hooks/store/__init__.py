"""What outlives a request: attempts of a running one, learned figures. In memory, or in LiteLLM's own cache."""
