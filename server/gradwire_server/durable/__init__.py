"""Sessions on disk: journals, snapshots and recovery."""
