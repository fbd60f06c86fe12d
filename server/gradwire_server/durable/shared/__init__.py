"""Sessions on storage that several machines share: leases, claims and epochs. docs/durability.md has the protocol."""
