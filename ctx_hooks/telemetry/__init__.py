"""What the caller and the operator see of a decision."""
