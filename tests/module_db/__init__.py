"""Torch's module database: every class of ``torch.nn`` in it, on all its inputs, against gradwire's class.

``python -m tests.module_db [NAME...]`` prints what passes, ``--record`` writes ``docs/module_coverage.json``.
"""
