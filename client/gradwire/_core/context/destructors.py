"""Ctrl-C that arrives while a tensor is deleted.

Python prints what a destructor raises and goes on, an interrupt included: the program would run on as if nobody had
pressed Ctrl-C, and the server would keep the tensor. Here the tensor is released, and the interrupt comes again.
"""

from __future__ import annotations

import sys
import threading
import time
from _thread import interrupt_main, start_new_thread
from collections.abc import Callable
from typing import Any, Final

LOOK_EVERY_S: Final = 1e-3


def keep_interrupts(destructor: Callable[[Any], None]) -> None:
    """Let interrupts that arrive in this destructor arrive once more, after it. Call once."""
    before = sys.unraisablehook

    def pass_on(unraisable: sys.UnraisableHookArgs) -> None:
        found = unraisable.exc_traceback
        if unraisable.object is not destructor or not isinstance(unraisable.exc_value, KeyboardInterrupt):
            before(unraisable)
            return
        if found is not None and found.tb_lineno == found.tb_frame.f_code.co_firstlineno:  # it had done nothing yet
            destructor(found.tb_frame.f_locals["self"])
        # Python drops what this hook raises, too, so that the interrupt has to wait for its end.
        start_new_thread(_interrupt_after, (pass_on.__code__,))

    sys.unraisablehook = pass_on


def _interrupt_after(code: Any) -> None:
    """Interrupt the main thread when it no longer runs this code."""
    ident = threading.main_thread().ident
    running = True
    while running:
        time.sleep(LOOK_EVERY_S)
        frame = sys._current_frames().get(ident) if ident is not None else None
        running = False
        while frame is not None and not running:
            running, frame = frame.f_code is code, frame.f_back
    interrupt_main()


__all__ = ["keep_interrupts"]
