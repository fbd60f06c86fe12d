"""A program to be killed: it counts in a session, one frame at a time, and prints what was committed."""

from __future__ import annotations

import sys
from pathlib import Path

from gradwire_protocol import dtypes
from gradwire_protocol.frames import Payload
from gradwire_server.hosting.runner import Runner
from gradwire_server.http.shortcut_frames import ShortcutFrame
from tests.server.story import CLIENT, new_runner

COUNTER = (CLIENT << 32) + 1
MOST = 100_000
JOURNAL_BYTES = 3_000
"""So short that many of the kills fall into a snapshot."""


def main(folder: Path) -> None:
    """Go on where the last one was killed."""
    begun = (folder / "session.json").exists()
    runner = Runner.recover(folder) if begun else new_runner(folder, "applied", JOURNAL_BYTES)
    runner.policy = type(runner.policy)(JOURNAL_BYTES, 0)
    if not begun:
        runner.join(0)
    begin = runner.session.expected(CLIENT)
    for seq in range(begin, MOST):
        builder = ShortcutFrame(CLIENT, COUNTER if seq == 1 else COUNTER + 5)
        if seq == 1:
            builder.record("upload", Payload(values=[1.0]), dtypes.float32, (1,), "cpu")
        else:
            builder.record("add_", builder.tensor(COUNTER), 1)
        frame = builder.build(False).frame
        frame.seq, frame.ack = seq, seq - 1
        reply, _ = runner.apply(frame, [])
        assert reply.refused is None
        assert not reply.errors
        runner.commit()
        print(seq, flush=True)
        runner.compact()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
