"""The oracle's module database: every class of ``torch.nn`` in it, on all its inputs, beside gradwire's class.

``python -m tests.module_db [NAME...]`` tells what passes, ``--record`` writes ``docs/module_coverage.json``.
"""
