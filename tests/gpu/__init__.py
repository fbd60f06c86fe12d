"""Checks that need a GPU, for a machine as it stands: ``python3 -m tests.gpu`` (``make gpu``)."""
