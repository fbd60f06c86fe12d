"""The ``gradwire`` command."""
