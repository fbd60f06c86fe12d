"""``Tensor``, the proxy for a tensor on the server."""
