"""Requests for derivatives as suites of automatic differentiation pose them: a mixture of Gaussians, k-means, an LSTM
over characters, bundle adjustment, and a hand of bones fitted to points. Numbers in, numbers out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import torch

import gradwire

from ..report import Plan, Row, Target
from ..servers import Server, session
from ..timing import Figures, seconds

ROUNDS: Final = 5
Request = Callable[[Any, int], Any]
"""The derivative as an array, by a library and of a size between 1 and :data:`FULL`."""

FULL: Final = 10


def _inputs(seed: int, *shapes: tuple[int, ...]) -> list[Any]:
    random = np.random.default_rng(seed)
    return [random.standard_normal(shape).astype(np.float64) for shape in shapes]


def gaussians(torch: Any, size: int) -> Any:
    """The gradient of the log-likelihood of points under five Gaussians with full covariances."""
    d, k = 6, 5
    given = _inputs(1, (k,), (k, d), (k, d), (k, d * (d - 1) // 2), (50 * size, d))
    weights, means, scales, lower = (torch.tensor(a, requires_grad=True) for a in given[:4])
    points = torch.tensor(given[4])
    rows, columns = np.tril_indices(d, -1)
    factor = torch.zeros((k, d, d), dtype=torch.float64)
    factor = factor.index_put((torch.arange(k)[:, None], torch.tensor(rows), torch.tensor(columns)), lower)
    factor = factor + torch.diag_embed(torch.exp(scales))
    apart = torch.einsum("kij,knj->kni", factor, points[None] - means[:, None])
    logs = weights[:, None] + scales.sum(1)[:, None] - 0.5 * apart.square().sum(2)
    likelihood = torch.logsumexp(logs, 0).sum() - len(given[4]) * torch.logsumexp(weights, 0)
    likelihood = likelihood + 0.5 * (torch.exp(scales).square().sum() + lower.square().sum())
    likelihood.backward()
    return np.concatenate([p.grad.numpy().reshape(-1) for p in (weights, means, scales, lower)])


def means(torch: Any, size: int) -> Any:
    """The gradient of the distance to the nearest of ten means, and its second derivative in one direction."""
    given = _inputs(2, (100 * size, 4), (10, 4))
    points, centres = torch.tensor(given[0]), torch.tensor(given[1], requires_grad=True)
    loss = (points[:, None] - centres[None]).square().sum(2).min(1).values.sum()
    (slope,) = torch.autograd.grad(loss, centres, create_graph=True)
    (curvature,) = torch.autograd.grad(slope.sum(), centres)
    return np.concatenate([slope.detach().numpy(), curvature.numpy()])


def characters(torch: Any, size: int) -> Any:
    """The gradient of an LSTM's loss over a text, written gate by gate, a character at a time."""
    width = 14
    given = _inputs(3, (2, 4, width), (2, 4, width), (2, 2, width), (2 * size, width))
    weight, bias, state = (torch.tensor(a, requires_grad=True) for a in given[:3])
    text, loss = torch.tensor(given[3]), 0.0
    hidden, cells = [state[0, 0], state[1, 0]], [state[0, 1], state[1, 1]]
    for at in range(2 * size - 1):
        here = text[at]
        for layer in range(2):
            forget = torch.sigmoid(here * weight[layer, 0] + bias[layer, 0])
            enter = torch.sigmoid(hidden[layer] * weight[layer, 1] + bias[layer, 1])
            leave = torch.sigmoid(here * weight[layer, 2] + bias[layer, 2])
            change = torch.tanh(hidden[layer] * weight[layer, 3] + bias[layer, 3])
            cells[layer] = cells[layer] * forget + enter * change
            hidden[layer] = here = leave * torch.tanh(cells[layer])
        loss = loss + (torch.log_softmax(here, 0) * text[at + 1]).sum()
    loss.backward()
    return np.concatenate([p.grad.numpy().reshape(-1) for p in (weight, bias, state)])


def bundle(torch: Any, size: int) -> Any:
    """The Jacobians of projections: each of a camera of eleven numbers and a point, two rows at a time."""
    cameras, points = _inputs(4, (3, 11), (2 * size, 3))
    found = []
    for number in range(2 * size):
        camera = torch.tensor(cameras[number % 3], requires_grad=True)
        point = torch.tensor(points[number], requires_grad=True)
        turn, centre, focus, middle, bend = camera[:3], camera[3:6], camera[6], camera[7:9], camera[9:11]
        angle = turn.square().sum().sqrt()
        axis, x = turn / angle, point - centre
        turned = x * torch.cos(angle) + torch.linalg.cross(axis, x) * torch.sin(angle)
        turned = turned + axis * (axis @ x) * (1 - torch.cos(angle))
        flat = turned[:2] / turned[2]
        far = flat.square().sum()
        seen = flat * (1 + bend[0] * far + bend[1] * far * far) * focus + middle
        for row in range(2):
            slopes = torch.autograd.grad(seen[row], (camera, point), retain_graph=not row)
            found.append(torch.cat(slopes))
    return torch.stack(found).numpy()


def hand(torch: Any, size: int) -> Any:
    """The gradient for the pose of five fingers of four bones, of the distance of their skin to given points."""
    pose, skin, wanted = _inputs(5, (5, 4, 3), (5 * size, 20), (5 * size, 3))
    angles = torch.tensor(pose * 0.3, requires_grad=True)
    shares = torch.softmax(torch.tensor(skin), 1)
    ends = []
    for finger in range(5):
        turn = torch.eye(3, dtype=torch.float64)
        at = torch.tensor([math.cos(finger), math.sin(finger), 0.0], dtype=torch.float64)
        for bone in range(4):
            a, b, c = angles[finger, bone]
            zero, one = torch.zeros_like(a), torch.ones_like(a)
            x = torch.stack([one, zero, zero, zero, a.cos(), -a.sin(), zero, a.sin(), a.cos()]).reshape(3, 3)
            y = torch.stack([b.cos(), zero, b.sin(), zero, one, zero, -b.sin(), zero, b.cos()]).reshape(3, 3)
            z = torch.stack([c.cos(), -c.sin(), zero, c.sin(), c.cos(), zero, zero, zero, one]).reshape(3, 3)
            turn = turn @ x @ y @ z
            at = at + turn[:, 0]
            ends.append(at)
    loss = (shares @ torch.stack(ends) - torch.tensor(wanted)).square().sum()
    loss.backward()
    return angles.grad.numpy()


REQUESTS: Final[dict[str, Request]] = {
    "Gaussian mixture": gaussians, "k-means": means, "LSTM": characters, "bundle adjustment": bundle,
    "hand tracking": hand,
}  # fmt: skip


def rows(plan: Plan, server: Server) -> Iterator[Row]:
    """Two rows for each: the first time in a session, and repeated."""
    rounds, size = plan.of(min(plan.rounds, ROUNDS), 1), plan.of(FULL, 1)
    for name, request in REQUESTS.items():
        first: list[float] = []
        repeated: list[float] = []
        theirs: list[float] = []
        expected = request(torch, size)
        for _ in range(rounds):
            with session(server):
                made: list[Any] = []
                first.append(seconds(lambda: made.append(request(gradwire, size))) * 1e3)  # noqa: B023
                np.testing.assert_allclose(made[0], expected, rtol=1e-6, atol=1e-8)
                for _ in range(plan.of(4, 1)):
                    request(gradwire, size)
                repeated.append(seconds(lambda: request(gradwire, size)) * 1e3)  # noqa: B023
                request(torch, size)
                theirs.append(seconds(lambda: request(torch, size)) * 1e3)  # noqa: B023
        beside = Figures(tuple(theirs))
        yield Row("cold", f"{name}, first time", "ms", Figures(tuple(first)), beside, Target(2.0, of="ratio"))
        yield Row("cold", f"{name}, repeated", "ms", Figures(tuple(repeated)), beside, Target(1.2, of="ratio"))
