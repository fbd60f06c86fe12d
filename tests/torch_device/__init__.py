"""The device of PyTorch's against PyTorch's CPU.

``trial`` runs one sample of the op database on both, ``coverage`` counts, ``record`` keeps what came of it in
``docs/device_coverage.json``; ``python -m tests.torch_device`` is the command. The tests beside it hold the record and
what no sample shows: views, versions, hooks, errors.
"""
