"""Errors on the wire: problem documents over HTTP, ``Problem`` messages on a stream."""
