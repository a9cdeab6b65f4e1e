"""What runs in the proxy around the engine: start-up, and the attempts of each request."""
