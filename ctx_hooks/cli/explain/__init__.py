"""`ctx-hooks explain`: what the plugin would do with a request, or did with one, and why. Nothing is sent or stored."""
