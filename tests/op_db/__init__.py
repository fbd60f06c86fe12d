"""The op database of the torch wheel, which measures how much of PyTorch gradwire supports.

``entries`` lists what counts, ``bridge`` converts samples between the libraries, ``trial`` runs one sample under
both, ``coverage`` counts and writes the record. ``python -m tests.op_db`` is the command; ``test_entries`` checks the
record.
"""
