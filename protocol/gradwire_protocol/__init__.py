"""What client, engine and server share: dtypes, shapes, the op table, frames and errors."""
