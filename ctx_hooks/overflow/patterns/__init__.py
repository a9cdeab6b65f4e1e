"""One file a kind of wording."""
