"""Sessions on disk: the journal of what was applied, snapshots, and the way back from both."""
