"""One attempt at a request: its fields, target and limits, and what its end shows of the deployment."""
