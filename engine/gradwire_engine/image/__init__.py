"""A session as plain data and host arrays, from which it goes on bit by bit as if nothing had been.

:func:`take` and :func:`restore` are for a server's own snapshots: they carry everything, the live graph included, and
trust what they read. :func:`detached` and :func:`restore_foreign` are for files that people exchange: values, names and
random state without a graph, and every word of it checked.
"""

from .facts import Image, NotImageable
from .foreign import detached, restore_foreign
from .restoring import restore
from .taking import take

__all__ = ["Image", "NotImageable", "detached", "restore", "restore_foreign", "take"]
