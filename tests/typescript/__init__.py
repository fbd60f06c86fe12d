"""The TypeScript client: its own tests, run by Node, and comparisons with the Python client."""
