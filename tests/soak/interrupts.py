"""Claim: after Ctrl-C at any moment the session is usable and its values are right: at every point, and at 1,000 random
moments.

First each program of :mod:`tests.interrupted_programs` is interrupted at each point at which the interpreter checks
for signals. Then a loop of forward, backward and reads gets a thousand real signals at random moments, and its
results are compared with the expected ones.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from contextlib import suppress
from typing import Any

import gradwire
from gradwire_protocol.errors import Cancelled
from tests import interrupted_programs
from tests.interrupted_programs import goes_on, tried
from tests.live_server import live_server

from . import Figures, enough, progress

SECONDS = 1200.0
INTERRUPTS = 1000
CHECK_EVERY = 20


def run(most_seconds: float) -> Figures:
    """Interrupt until there were enough, or the time is over."""
    until = time.monotonic() + most_seconds
    with live_server() as server:
        before = gradwire._core.session.current_session._current
        with gradwire.connect(server.url, server.api_key) as session:
            try:
                random_ones = at_random(session, INTERRUPTS, until)
                enough(random_ones, INTERRUPTS, "interrupts")
                places = 0
                for name, program in interrupted_programs.programs(session).items():
                    progress(name)
                    for _ in range(3):
                        most = interrupted_programs.length(program)
                    places += tried(session, program, range(1, most + 1), until)
                return {"interrupts at random moments": random_ones, "places": places}
            finally:
                gradwire._core.session.current_session._current = before


def at_random(session: Any, most: int, until: float, seed: int | None = None) -> int:
    """Send this process signals at random moments, while it computes; how many arrived."""
    chance = random.Random(seed)
    done, armed, over = 0, False, threading.Event()

    def interrupt(*_: object) -> None:
        if armed:
            raise KeyboardInterrupt

    def send() -> None:
        # Again and again: Python ignores what is raised while an object is being destroyed.
        while not over.wait(chance.uniform(0.0, 0.02)):
            os.kill(os.getpid(), signal.SIGINT)

    handler = signal.signal(signal.SIGINT, interrupt)
    sender = threading.Thread(target=send)
    sender.start()
    try:
        while done < most and time.monotonic() < until:
            y = gradwire.tensor([1.0, 2.0, 3.0], requires_grad=True)
            total = gradwire.zeros(3)
            try:
                armed = True
                while True:
                    (y * 2).sin().sum().backward()
                    total += 1
                    if chance.random() < 0.05:
                        total.tolist()
            except KeyboardInterrupt:
                armed = False
                done += 1
            with suppress(Cancelled):  # an interrupt of a wait cancels what was on its way
                values = total.tolist()
                assert values == [values[0]] * 3, values
                assert values[0] == int(values[0])
            if done % CHECK_EVERY == 0:
                goes_on(session)
            progress(f"{done} of {most}")
    finally:
        armed = False
        over.set()
        sender.join()
        signal.signal(signal.SIGINT, handler)
    goes_on(session)
    return done
