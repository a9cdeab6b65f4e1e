"""Reports decisions to the caller and the operator."""
