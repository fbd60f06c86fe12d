"""Libraries of PyPI that are built on PyTorch, under ``gradwire run``: each trains something small, and must compute
what it computes with PyTorch.

``python -m tests.libraries`` installs them under ``build/libraries`` and runs the programs of ``programs/``, which are
ordinary PyTorch programs: once with PyTorch, once with gradwire and without PyTorch on the path. ``--record`` writes
``results.json``, which docs/libraries.md shows.
"""
