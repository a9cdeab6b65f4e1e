"""Reading of long texts in pieces, each in linear time."""
