"""The code around the engine in the proxy: start-up, and the attempts of each request."""
