"""What the operator wants: the settings of the YAML, and which of them apply to a request."""
