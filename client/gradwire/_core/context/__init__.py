"""Thread state, call sites and small value types. Imports no other room of the client."""
