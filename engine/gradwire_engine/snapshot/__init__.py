"""A session as plain data and host arrays, from which it continues with the same bits.

A snapshot holds ids, memory with its sharing and versions, gradients, names, random state, every live node with its
saved tensors, checkpoint regions, clients with their kept replies, unfinished uploads and known structures. Plans are
not part of it, nor are byte counts of objects that only Python's garbage collector still holds. Three things cannot
be in a snapshot, and :func:`take` raises ``NotImageable`` while one exists: a backward that waits for its client, an
open forward-mode level, and tensors inside a vmap.

:func:`take` and :func:`restore` are for the server's own snapshots. They carry everything, the live graph included,
and trust what they read. :func:`detached` and :func:`restore_foreign` are for exchanged files: values, names and
random state without a graph, and every field is checked.
"""

from .facts import Image, NotImageable
from .foreign import detached, restore_foreign
from .restoring import restore
from .taking import take
from .traveling import revisited, rewound

__all__ = ["Image", "NotImageable", "detached", "restore", "restore_foreign", "revisited", "rewound", "take"]
