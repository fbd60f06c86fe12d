"""Sessions on shared storage."""
