"""A model of the storage protocol of a fleet, explored exhaustively.

Several owners (each is one incarnation of a worker process; a restart is the next owner) serve one session of one
client, which sends three frames and resends what was not answered to whoever serves. Any process stops between any two
steps for any time, crashes anywhere, and its writes to the storage take effect long after they were sent, with an
object store even after its end, or after its retry was answered.

**Time.** Each process measures durations on its own monotonic clock. Three facts suffice, so the model counts ticks:
an owner's lease ends at most ``LEASE_TICKS`` after the time that it noted; a contender's wait takes at least
``WAIT_TICKS``; the margin of 10 % makes the second number the larger one, whichever clock is fast. Between two ticks,
anything happens in any order. Stop and continue (a zombie) needs no action of its own: no step is ever due.

``python -m tests.fleet.model`` explores it; ``--large`` with larger bounds, ``--bug NAME`` with a planted bug.
"""
