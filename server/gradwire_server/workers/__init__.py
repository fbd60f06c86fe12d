"""Sessions in worker processes.

The server's side is ``pool.py`` (processes) and ``host.py`` (a session's host over the wire). The worker's side is
``worker.py``, which runs the same inline hosts as the server would. ``wire.py`` has the messages between them.
"""
