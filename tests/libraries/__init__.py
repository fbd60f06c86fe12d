"""Libraries of PyPI that are built on PyTorch, under ``gradwire run`` and on gradwire's device: each trains something
small, and must compute what it computes with PyTorch.

``python -m tests.libraries`` installs them under ``build/libraries`` and runs the programs of ``programs/``, which are
ordinary PyTorch programs: with PyTorch, with gradwire and without PyTorch on the path, and with PyTorch where the
variable ``DEVICE`` names gradwire's device, on which they put their modules and data. ``--record`` writes
``results.json``, which docs/libraries.md shows.
"""
