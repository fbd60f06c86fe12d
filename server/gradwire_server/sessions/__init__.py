"""The sessions of a server: ownership, lifetime and recovery."""
