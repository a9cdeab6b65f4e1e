"""What stands for removed exchanges."""
