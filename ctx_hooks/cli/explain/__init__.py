"""`ctx-hooks explain`: what the plugin would do with a request, and why. Nothing is sent or stored."""
