"""Groups of sessions: how the ranks find each other, and the connections that their collectives use.

``rendezvous.py`` brings the ranks of a group together, in the server. ``listener.py`` is where a process takes
connections of other ranks, ``peer_link.py`` one connection, which may break and come again, and ``links.py`` all of
one group: the engine's ``Communicator``. The last three run wherever the session does, in the server or in a worker
process, in threads of their own: a rank that computes still receives, and one that waits blocks nobody else.
"""
