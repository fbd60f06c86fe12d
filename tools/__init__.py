"""What is done to the project rather than by it."""
