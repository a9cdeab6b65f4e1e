"""Functions that read long texts piece by piece, in linear time."""
