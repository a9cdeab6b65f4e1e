"""One request from its first hook to its end, and one decision about each of its attempts."""
