"""Sessions in worker processes: what they are told, how they are started and replaced.

The server's side is ``pool.py`` (processes) and ``host.py`` (a session's host over the wire), the worker's
``worker.py``, which runs the same hosts as the server would; ``wire.py`` is what they say to each other.
"""
