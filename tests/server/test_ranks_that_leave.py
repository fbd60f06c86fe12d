"""A rank that has done its part may leave before a peer has connected to it."""

from __future__ import annotations

import time

from gradwire_engine.runtime.groups import Group
from gradwire_server.groups.links import GroupLinks
from gradwire_server.groups.listener import Listener
from tests.wired_ranks import spec

SECRET = "the secret of the group"


def test_what_it_sent_arrives_at_a_peer_that_connects_later() -> None:
    """Whoever tells the peer that the rank has left is quicker than its connection."""
    listeners = Listener(), Listener()
    addresses = [listener.address for listener in listeners]
    first, second = Group(spec(0, 2)), Group(spec(1, 2))
    leaving = GroupLinks(first, SECRET, addresses, listeners[0])
    first.communicator = leaving
    first.put("sum", 1, b"what the peer needs")
    leaving.close("it has ended")
    staying = GroupLinks(second, SECRET, addresses, listeners[1])
    staying.lost(0, "rank 0 has left")
    until = time.monotonic() + 20
    while (found := staying.take(0, 0.1)) is None and time.monotonic() < until:
        pass
    assert found is not None
    assert (found[0], bytes(found[1])) == ("sum", b"what the peer needs")
    staying.committed([1, 0])
    staying.close("it has ended")
