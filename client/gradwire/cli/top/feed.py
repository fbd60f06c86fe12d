"""The server's activity as it comes: server-sent events, received in a thread that reconnects."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any, Final

import httpx

from gradwire_protocol.errors import GradwireError

from ..._core.wire.http_clients import HttpClients
from ..._core.wire.http_logging import unlogged
from ..._core.wire.rest import problem_error

STREAM: Final = "/v1/activity/stream"
SNAPSHOT: Final = "/v1/activity"
SILENT_S: Final = 10.0
"""A stream that says nothing for this long is opened again; the server speaks every second."""
PAUSES_S: Final = (1.0, 2.0, 4.0, 8.0)
LINE_CHARS: Final = 32 << 20

Activity = dict[str, Any]


class Feed:
    """The last activity that a server reported.

    Attributes:
        activity: the last report, or ``None`` before the first.
        trouble: why none comes, or empty.
        refusal: why none will come: the server refuses. Final.
        news: set when something of this changed.
    """

    def __init__(self, url: str, key: str) -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self.activity: Activity | None = None
        self.trouble = ""
        self.refusal: GradwireError | None = None
        self.news = threading.Event()
        self._clients = HttpClients(url, headers, SILENT_S)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="activity", daemon=True)

    def start(self) -> None:
        """Begin to receive."""
        self._thread.start()

    def close(self) -> None:
        """Stop to receive. A request under way ends with the process at the latest."""
        self._closed.set()
        self._clients.close()

    def _run(self) -> None:
        failures = 0
        while not self._closed.is_set():
            why = ""
            try:
                for event, data in self._events():
                    if self._closed.is_set():
                        return
                    if event == "end":
                        why = f"the server ended the stream: {data[:100]}"
                    elif isinstance(activity := json.loads(data), dict):
                        self.activity, failures = activity, 0
                        self._tell("")
                why = why or "the connection was closed"
            except GradwireError as error:
                if not error.retryable:
                    self.refusal = error
                    self._tell(error.message)
                    return
                why = error.message
            except (httpx.HTTPError, OSError, ValueError) as error:
                why = str(error) or type(error).__name__
            pause = PAUSES_S[min(failures, len(PAUSES_S) - 1)]
            failures += 1
            self._tell(f"{why}; trying again in {pause:g} s")
            self._closed.wait(pause)

    def _tell(self, trouble: str) -> None:
        self.trouble = trouble
        self.news.set()

    def _events(self) -> Iterator[tuple[str, str]]:
        """The events of one connection: their kinds and data.

        Raises:
            GradwireError: when the server refuses.
            httpx.HTTPError: when the connection breaks.
        """
        headers = {"Accept": "text/event-stream"}
        with unlogged(), self._clients.borrowed() as http, http.stream("GET", STREAM, headers=headers) as response:
            if not response.is_success:
                response.read()
                raise problem_error(response)
            kind = "message"
            data: list[str] = []
            for line in response.iter_lines():
                if len(line) > LINE_CHARS:
                    raise ValueError("an event is too long")
                name, _, value = line.partition(":")
                value = value.removeprefix(" ")
                if not line:
                    if data:
                        yield kind, "\n".join(data)
                    kind, data = "message", []
                elif name == "event":
                    kind = value
                elif name == "data":
                    data.append(value)
