"""The connection that a link has at the moment: one use at a time, and closed by whatever interrupts a use.

A signal's handler may come in the middle of a use, and send and wait itself. It takes the way from what it came into
and goes on over a new connection; what it came into is told so (:class:`WayTaken`) when it goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .connection import Connection, Disconnected


class WayTaken(Disconnected):
    """What ran here was not the server's fault: a signal's handler came, and has gone another way."""

    def __init__(self) -> None:
        super().__init__("a signal's handler has taken this connection's place")


class GuardedConnection:
    """What is sent and received goes through :meth:`use`.

    Attributes:
        connection: the open one, or ``None``. Whoever opens one puts it here.
    """

    __slots__ = ("_acting", "_past_received", "_past_sent", "connection")

    def __init__(self) -> None:
        self.connection: Connection | None = None
        self._acting = False
        self._past_sent = 0
        self._past_received = 0

    @property
    def bytes_sent(self) -> int:
        """By all connections together."""
        return self._past_sent + (self.connection.sent_bytes if self.connection else 0)

    @property
    def bytes_received(self) -> int:
        """By all connections together."""
        return self._past_received + (self.connection.received_bytes if self.connection else 0)

    def use(self, action: Callable[..., None], *args: Any) -> None:
        """Call ``action(connection, *args)``. An exception in it, Ctrl-C included, ends the connection: nobody knows
        how far it came.

        Raises:
            Disconnected: when there is no connection, or it breaks.
            WayTaken: when it is in use already; it is ended, and what used it raises this, too.
        """
        if self._acting:
            self._take()
            raise WayTaken()
        connection = self.connection
        if connection is None:
            raise Disconnected("not connected")
        whole, self._acting = False, True
        try:
            action(connection, *args)
            whole = True
        except Disconnected:
            raise
        except Exception:
            if self.connection is not connection:
                raise WayTaken() from None
            raise
        finally:
            if self.connection is connection:
                self._acting = False
                if not whole:
                    self.let_go()
            else:
                connection.drop()

    def check(self, connection: Connection) -> None:
        """Look whether this is still the connection in use.

        Raises:
            WayTaken: when it is not.
        """
        if self.connection is not connection:
            raise WayTaken()

    def let_go(self) -> None:
        """Drop the connection, if there is one."""
        connection = self._forget()
        if connection is not None:
            connection.drop()

    def close(self) -> None:
        """Close the connection in due form, if there is one."""
        if self.connection is not None:
            self.connection.close()
        self.let_go()

    def _take(self) -> None:
        connection = self._forget()
        self._acting = False
        if connection is not None:
            connection.break_off()  # what used it closes it

    def _forget(self) -> Connection | None:
        connection, self.connection = self.connection, None
        if connection is not None:
            self._past_sent += connection.sent_bytes
            self._past_received += connection.received_bytes
        return connection
