"""What runs for the first time, or never again the same: where no plan helps.

Frames of ops that were never seen; tokens sampled with a growing context; a policy that acts on what it reads each
step; and requests for derivatives, as a user who differentiates a function of their own sends them.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ..report import Plan, Row
from ..servers import Server
from . import generation, policy, requests, unseen


def run(plan: Plan) -> Iterator[Row]:
    """The rows of all four, with one thread on both sides."""
    torch.set_num_threads(1)
    with Server(1) as server:
        for part in (unseen, generation, policy, requests):
            yield from part.rows(plan, server)
