"""One connection to a server, over which frames arrive exactly once.

``Link`` numbers frames, keeps the unanswered ones, reconnects and resends. A signal handler that interrupts a send or
a receive closes the connection (:mod:`.guarded_connection`) and resumes on a new one; the interrupted use then does
the same. Delivery stays exact, since frames are numbered across connections.
"""
