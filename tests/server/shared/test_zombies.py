"""A server is stopped past its lease and continued: nothing of it counts, no frame is applied twice or lost."""

from __future__ import annotations

from pathlib import Path

from tests.server.shared.zombies import Servers


def test_three_zombies(tmp_path: Path) -> None:
    with Servers(str(tmp_path)) as servers:
        for seed in range(3):
            found = servers.make_zombie(seed)
            assert found.right
            assert found.ended
            assert found.wait_s > 1.0, "the server was not stopped while the program ran"
