"""The current connection of a link: used by one caller at a time, and closed when a use is interrupted.

A signal handler may run in the middle of a use, and send and wait itself. It drops the interrupted connection and
opens a new one; the interrupted use raises :class:`ConnectionTaken` when it resumes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .connection import Connection, Disconnected


class ConnectionTaken(Disconnected):
    """Not a failure of the server: a signal handler interrupted this use and replaced the connection."""

    def __init__(self) -> None:
        super().__init__("a signal handler replaced this connection")


class GuardedConnection:
    """Guards a connection: everything is sent and received through :meth:`use`.

    Attributes:
        connection: the open connection, or ``None``. Whoever opens one sets it.
    """

    __slots__ = ("_acting", "_past_received", "_past_sent", "connection")

    def __init__(self) -> None:
        self.connection: Connection | None = None
        self._acting = False
        self._past_sent = 0
        self._past_received = 0

    @property
    def direct(self) -> bool:
        """Whether the open connection leads past a gateway to the session's worker."""
        return self.connection is not None and self.connection.direct

    @property
    def bytes_sent(self) -> int:
        """Bytes sent over all connections so far."""
        return self._past_sent + (self.connection.sent_bytes if self.connection else 0)

    @property
    def bytes_received(self) -> int:
        """Bytes received over all connections so far."""
        return self._past_received + (self.connection.received_bytes if self.connection else 0)

    def use(self, action: Callable[..., None], *args: Any) -> None:
        """Call ``action(connection, *args)``. An exception in it, Ctrl-C included, ends the connection: a message may
        have been sent in part.

        Raises:
            Disconnected: when there is no connection, or it breaks.
            ConnectionTaken: when it is in use already. The connection is ended, and the interrupted use raises this
                as well.
        """
        if self._acting:
            self._take()
            raise ConnectionTaken()
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
                raise ConnectionTaken() from None
            raise
        finally:
            if self.connection is connection:
                self._acting = False
                if not whole:
                    self.let_go()
            else:
                connection.drop()

    def let_go(self) -> None:
        """Drop the connection, if there is one."""
        connection = self._forget()
        if connection is not None:
            connection.drop()

    def close(self) -> None:
        """Close the connection with a closing handshake, if there is one."""
        if self.connection is not None:
            self.connection.close()
        self.let_go()

    def _take(self) -> None:
        connection = self._forget()
        self._acting = False
        if connection is not None:
            connection.break_off()  # the interrupted use closes it

    def _forget(self) -> Connection | None:
        connection, self.connection = self.connection, None
        if connection is not None:
            self._past_sent += connection.sent_bytes
            self._past_received += connection.received_bytes
        return connection
