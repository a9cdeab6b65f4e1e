"""What the plugin did, or would have done, as one self-contained page, from event files."""
