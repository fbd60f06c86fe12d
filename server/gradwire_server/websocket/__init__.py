"""Streams: the protocol on a WebSocket."""
