"""PyTorch's public names, and which of them gradwire lacks.

``python -m tools.public_names --record`` reads the names from the installed torch and writes them to ``torch.json``
(about 20 s). ``tools.derive`` compares that record with gradwire and writes ``docs/missing-names.md`` and a section of
``docs/differences.md``. A missing name needs a reason (:mod:`.reasons`); without one the derivation fails.
"""
