"""``Module`` and ``Parameter``, the base classes of layers."""
