"""A defective or malicious server causes a typed error in the program, and nothing worse."""

from __future__ import annotations

import http
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pytest
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Response
from websockets.sync.server import ServerConnection, serve

from gradwire._core.wire.link import Link
from gradwire_protocol import envelope
from gradwire_protocol.errors import (
    ConnectionLost,
    GradwireError,
    InternalError,
    MalformedFrame,
    ReplyForgotten,
    SessionGone,
    Unavailable,
)
from gradwire_protocol.frames import Chunk, Frame, Hello, Problem, Refusal, Reply, Structure, Value, Welcome

READ = envelope.encode_part(Structure(ops=[["zeros", [[2]]]], reads=[0]))
VALUE = np.array([1.0, 2.0], np.float32)
Script = Callable[[ServerConnection, Frame], None]


def pack(message: Any, *buffers: bytes) -> bytes:
    return envelope.join(envelope.encode(message, list(buffers)))


def answer(stream: ServerConnection, frame: Frame) -> None:
    """What a server answers that has no defect."""
    value = Value(dtype="float32", shape=[2], buffer=0)
    stream.send(pack(Reply(seq=frame.seq, values=[value]), VALUE.tobytes()))


class FakeServer:
    """Says hello as it should, and answers the frames of its n-th connection as the n-th script says."""

    def __init__(self, scripts: list[Script]) -> None:
        self.scripts = scripts
        self.hellos: list[Hello] = []
        self.refusals: list[Response] = []
        self.expected = 1

    def handle(self, stream: ServerConnection) -> None:
        script = self.scripts[min(len(self.hellos), len(self.scripts) - 1)]
        hello, _ = envelope.decode(stream.recv())
        assert isinstance(hello, Hello)
        self.hellos.append(hello)
        stream.send(pack(Welcome(version=1, client=2, expected=self.expected, epoch=len(self.hellos))))
        with suppress(ConnectionClosed):
            for data in stream:
                message, _ = envelope.decode(data)
                if isinstance(message, Frame):
                    script(stream, message)

    def refuse(self, stream: ServerConnection, request: Any) -> Response | None:
        return self.refusals.pop(0) if self.refusals else None


@contextmanager
def fake_server(*scripts: Script) -> Iterator[tuple[FakeServer, str]]:
    fake = FakeServer(list(scripts) or [answer])
    with serve(fake.handle, "127.0.0.1", 0, process_request=fake.refuse, close_timeout=1) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield fake, f"http://127.0.0.1:{server.socket.getsockname()[1]}"
        server.shutdown()
        thread.join(240)


def submit(link: Link) -> int:
    return link.submit(Frame(first=2 << 32 | 1), READ, b"", [], [None], wait=True, reads=1, read_bytes=8)


def read(link: Link) -> Any:
    found = link.wait(submit(link))
    return np.frombuffer(found.buffers[found.reply.values[0].buffer], np.float32).tolist()


def sends(*messages: bytes | str) -> Script:
    def script(stream: ServerConnection, frame: Frame) -> None:
        for message in messages:
            stream.send(message)

    return script


def reply(**facts: Any) -> bytes:
    buffers = facts.pop("bytes", [VALUE.tobytes()])
    value = {"dtype": "float32", "shape": [2], "buffer": 0} | facts.pop("value", {})
    return pack(Reply(**{"seq": 1, "values": [Value(**value)]} | facts), *buffers)


def piece(transfer: int, offset: int, total: int, size: int) -> bytes:
    return pack(Chunk(transfer=transfer, offset=offset, total=total), bytes(size))


DEFECTS = {
    "an answer to a frame that was never sent": [reply(seq=9)],
    "no value": [reply(values=[], bytes=[])],
    "a value too many": [reply(values=[Value(), Value()], bytes=[])],
    "a dtype that there is not": [reply(value={"dtype": "float31"})],
    "fewer bytes than the shape has": [reply(value={"shape": [3]})],
    "a negative extent": [reply(value={"shape": [-2]})],
    "a buffer that is not there": [reply(value={"buffer": 1})],
    "a buffer below the first": [reply(value={"buffer": -1})],
    "no buffer": [reply(value={"buffer": None})],
    "an error that is not there": [reply(value={"dtype": "", "buffer": None, "error": 0}, bytes=[])],
    "a download that did not come": [reply(value={"buffer": None, "download": 5}, bytes=[])],
    "half a download": [piece(5, 0, 8, 4), reply(value={"buffer": None, "download": 5}, bytes=[])],
    "a piece that leaves a gap": [piece(5, 4, 8, 4)],
    "a piece before the first": [piece(5, -4, 8, 4)],
    "a piece past the end": [piece(5, 0, 8, 16)],
    "another total in the middle": [piece(5, 0, 16, 4), piece(5, 4, 1 << 40, 4)],
    "an endless download": [piece(5, 0, 1 << 60, 4)],
    "many downloads at once": [piece(n, 0, 30 << 20, 4) for n in range(4)],
    "an empty piece": [piece(5, 0, 8, 0)],
    "a chunk without bytes": [pack(Chunk(transfer=5, offset=0, total=8))],
    "bytes that are no message": [b"\xff" * 100],
    "no bytes": [b""],
    "text": ["hello"],
    "a hello": [pack(Hello(version=1))],
    "a second welcome": [pack(Welcome(version=1, client=2, expected=1))],
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_of_the_server_is_a_typed_error_and_the_next_use_resumes(defect):
    with fake_server(sends(*DEFECTS[defect]), answer) as (fake, url):
        link = Link(url, "s_fake", None, patience=60)
        with pytest.raises(MalformedFrame):
            read(link)
        # The frame was not answered: it is sent again on the next connection, and the one of this read after it.
        assert read(link) == [1.0, 2.0]
        assert len(fake.hellos) == 2
        link.close()


def test_a_reply_that_stays_malformed_is_an_error_of_that_read_alone():
    def script(stream: ServerConnection, frame: Frame) -> None:
        if frame.seq == 1:
            stream.send(reply(value={"shape": [3]}))
        else:
            answer(stream, frame)

    with fake_server(script) as (fake, url):
        link = Link(url, "s_fake", None, patience=60)
        first = submit(link)
        with pytest.raises(MalformedFrame, match="12 bytes"):
            link.wait(first)
        assert read(link) == [1.0, 2.0]  # not the same error again: only the first frame's values are lost
        assert isinstance(link.wait(first).refusal, MalformedFrame)
        assert len(fake.hellos) == 2
        link.close()


@pytest.mark.parametrize("code", ["internal", "no_such_code", "unauthorized"])
def test_a_stream_that_ends_with_a_problem_raises_it_and_the_next_use_resumes(code):
    refusal = pack(Refusal(Problem(code=code, detail="words", extra={"code": 1, "message": 2, "op": 3})))
    with fake_server(sends(refusal), answer) as (_, url):
        link = Link(url, "s_fake", None, patience=60)
        with pytest.raises(GradwireError, match="words"):
            read(link)
        assert read(link) == [1.0, 2.0]
        link.close()


def test_a_server_that_says_welcome_and_hangs_up_is_not_asked_for_ever():
    def hang_up(stream: ServerConnection, frame: Frame) -> None:
        stream.close()

    with fake_server(hang_up) as (fake, url):
        link = Link(url, "s_fake", None, patience=0.5)
        with pytest.raises(ConnectionLost, match="frame 1 "):
            read(link)
        assert 2 < len(fake.hellos) < 100
        link.close()


def test_a_reply_that_the_server_has_forgotten_is_an_error_of_that_read_alone():
    forgotten = pack(Reply(seq=1, refused=Problem(code="reply_forgotten", detail="no longer kept")))
    with fake_server(lambda stream, frame: stream.send(forgotten) if frame.seq == 1 else answer(stream, frame)) as (
        fake,
        url,
    ):
        link = Link(url, "s_fake", None, patience=60)
        seq = link.submit(Frame(first=2 << 32 | 1), READ, b"", [], [None], wait=True, reads=1, read_bytes=8)
        assert isinstance(link.wait(seq).refusal, ReplyForgotten)
        assert read(link) == [1.0, 2.0]
        assert len(fake.hellos) == 1
        link.close()


@pytest.mark.parametrize("code, error", [("internal", InternalError), ("unknown_structure", MalformedFrame)])
def test_a_server_that_refuses_whatever_it_is_sent_is_not_asked_for_ever(code, error):
    seen = []

    def refuse(stream: ServerConnection, frame: Frame) -> None:
        seen.append(frame.seq)
        stream.send(pack(Reply(seq=frame.seq, refused=Problem(code=code, detail="words"))))

    with fake_server(refuse, answer) as (_, url):
        link = Link(url, "s_fake", None, patience=60)
        seq = link.submit(Frame(first=2 << 32 | 1), READ, b"k" * 16, [], [None], wait=True, reads=1, read_bytes=8)
        with pytest.raises(error):
            link.wait(seq)
        assert len(seen) < 6
        link.close()


def test_a_server_that_paces_a_program_is_given_its_time():
    refused = []

    def pace(stream: ServerConnection, frame: Frame) -> None:
        if len(refused) < 3:
            refused.append(frame.seq)
            problem = Problem(code="too_many_requests", detail="slower", retryable=True, extra={"retry_after_s": 0.1})
            stream.send(pack(Reply(seq=frame.seq, refused=problem)))
        else:
            answer(stream, frame)

    with fake_server(pace) as (_, url):
        link = Link(url, "s_fake", None, patience=120)
        assert read(link) == [1.0, 2.0]
        assert refused == [1, 1, 1]
        link.close()


def test_a_session_that_forgot_what_it_acknowledged_is_gone():
    def answer_and_hang_up(stream: ServerConnection, frame: Frame) -> None:
        answer(stream, frame)
        stream.close()

    with fake_server(answer_and_hang_up) as (_, url):
        link = Link(url, "s_fake", None, patience=60)
        assert read(link) == [1.0, 2.0]
        with pytest.raises(SessionGone, match=r"expects frame 1.*Frames up to 1 were acknowledged; frame 2"):
            read(link)  # the server expects frame 1 again, as if it had never been
        with pytest.raises(SessionGone):
            read(link)
        link.close()


def test_a_reply_that_takes_long_is_waited_for_while_pings_are_answered():
    def slowly(stream: ServerConnection, frame: Frame) -> None:
        time.sleep(2.5)
        answer(stream, frame)

    with fake_server(slowly) as (fake, url):
        link = Link(url, "s_fake", None, patience=60, heartbeat=0.5)
        assert read(link) == [1.0, 2.0]
        assert len(fake.hellos) == 1
        link.close()


def refusal(status: int, **headers: str) -> Response:
    fields = Headers({name.replace("_", "-"): value for name, value in headers.items()} | {"Content-Length": "0"})
    return Response(status, http.HTTPStatus(status).phrase, fields, b"")


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_server_that_is_not_ready_is_asked_again_when_it_says(status):
    with fake_server(answer) as (fake, url):
        fake.refusals = [refusal(status, Retry_After="1")]
        began = time.monotonic()
        link = Link(url, "s_fake", None, patience=120)
        assert time.monotonic() - began >= 1
        assert read(link) == [1.0, 2.0]
        link.close()


def test_a_server_that_asks_for_more_time_than_there_is_patience_is_not_waited_for():
    with fake_server(answer) as (fake, url):
        fake.refusals = [refusal(503, Retry_After="3600")]
        began = time.monotonic()
        with pytest.raises(ConnectionLost, match="503"):
            Link(url, "s_fake", None, patience=600)
        assert time.monotonic() - began < 300


@pytest.mark.parametrize("status", [404, 405, 400])
def test_what_is_no_gradwire_server_is_said_to_be_none(status):
    with fake_server(answer) as (fake, url):
        fake.refusals = [refusal(status)] * 50
        with pytest.raises(Unavailable, match=f"not from a gradwire server.*{status}"):
            Link(url, "s_fake", None, patience=120)


def test_a_name_that_cannot_be_resolved_for_now_is_tried_again(monkeypatch):
    resolve, asked = socket.getaddrinfo, []

    def sometimes(host: Any, *rest: Any, **more: Any) -> Any:
        if host != "gradwire.test":
            return resolve(host, *rest, **more)
        asked.append(host)
        if len(asked) < 4:
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return resolve("127.0.0.1", *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", sometimes)
    with fake_server(answer) as (_, url):
        link = Link(url.replace("127.0.0.1", "gradwire.test"), "s_fake", None, patience=120)
        assert read(link) == [1.0, 2.0]
        assert len(asked) == 4
        link.close()


@pytest.mark.parametrize("url", ["https://127.0.0.1:{port}", "http://no..such..name", "http://127.0.0.1:{closed}"])
def test_what_cannot_be_reached_is_named_when_patience_ends(url):
    with socket.create_server(("127.0.0.1", 0)) as found:
        closed = found.getsockname()[1]
    with fake_server(answer) as (_, there):
        chosen = url.format(port=there.rpartition(":")[2], closed=closed)
        with pytest.raises(ConnectionLost, match=r"could not be reached for 0\.2 s .*cannot be reached: "):
            Link(chosen, "s_fake", None, patience=0.2)


def test_a_stranger_in_the_servers_place_passes_for_one_who_resumes():
    def hang_up(stream: ServerConnection, frame: Frame) -> None:
        fake.refusals = [refusal(404), refusal(400)]  # a proxy that does not find the server, a portal to sign in to
        stream.close()

    with fake_server(hang_up, answer) as (fake, url):
        link = Link(url, "s_fake", None, patience=120)
        assert read(link) == [1.0, 2.0]
        link.close()


def test_an_end_that_comes_together_with_a_reply_is_seen_at_once():
    resumed = threading.Event()
    seen: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def reply_and_end(stream: ServerConnection, frame: Frame) -> None:
        value = Value(dtype="float32", shape=[2], buffer=0)
        stream.protocol.send_binary(pack(Reply(seq=frame.seq, values=[value]), VALUE.tobytes()))
        stream.protocol.send_close(1012)
        stream.socket.sendall(b"".join(stream.protocol.data_to_send()))
        seen.put(resumed.wait(20))  # the socket stays open until the client has come again

    def answer_again(stream: ServerConnection, frame: Frame) -> None:
        answer(stream, frame)
        resumed.set()

    with fake_server(reply_and_end, answer_again) as (fake, url):
        link = Link(url, "s_fake", None, patience=60)
        first, second = submit(link), submit(link)
        assert link.wait(first).reply.seq == 1
        fake.expected = 2
        assert link.wait(second).reply.seq == 2
        assert seen.get(timeout=60)
        assert len(fake.hellos) == 2
        link.close()
