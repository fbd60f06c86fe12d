"""The internals of the public modules. Nothing here is part of the API."""
