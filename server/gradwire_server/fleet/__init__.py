"""A fleet: sessions in worker processes on many machines, behind one URL, placed by Ray.

``gateway`` is the application that clients talk to; ``forwarding`` and ``relay`` carry its requests and streams to the
workers. ``worker`` is the Ray actor that runs the ordinary application with sessions in its own process. ``directory``
is the one Ray actor that knows where each session is; ``registry`` holds its tables, ``placement`` makes and chooses
workers, ``shares`` divides rates. ``messages`` declares what these three send each other, ``resources`` what a session
may ask for. Only this room imports Ray.
"""
