"""The op database that the torch wheel packages, as the measure of how much of PyTorch gradwire has.

``entries`` lists what counts, ``bridge`` carries samples between the libraries, ``trial`` runs one sample under both,
``coverage`` counts and keeps the record. ``python -m tests.op_db`` is the command, ``test_entries`` holds the record.
"""
