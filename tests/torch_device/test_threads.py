"""Threads, and the modes of a thread."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch

import gradwire as gw
import gradwire_torch

gradwire_torch.register()
D = "gradwire"


def test_threads_use_the_device_at_once() -> None:
    found: dict[int, Any] = {}

    def work(i: int) -> None:
        with torch.no_grad():
            x = torch.full((3,), float(i), device=D)
            for _ in range(50):
                x = x + 1
        w = torch.ones(3, device=D, requires_grad=True)
        for _ in range(20):
            (w * i).sum().backward()
        assert w.grad is not None
        found[i] = x.tolist(), w.grad.tolist(), x.requires_grad, torch.is_grad_enabled()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {i: ([50.0 + i] * 3, [20.0 * i] * 3, False, True) for i in range(4)}


def test_a_graph_of_one_thread_is_differentiated_in_another() -> None:
    w = torch.ones(3, device=D, requires_grad=True)
    loss = (w * 3).exp().sum()
    thread = threading.Thread(target=loss.backward)
    thread.start()
    thread.join()
    wanted = torch.ones(3, requires_grad=True)
    (wanted * 3).exp().sum().backward()
    assert w.grad is not None and wanted.grad is not None
    torch.testing.assert_close(w.grad.cpu(), wanted.grad)


def test_modes_hold_in_their_thread_alone() -> None:
    w = torch.ones(3, device=D, requires_grad=True)
    seen = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: seen.append((w * 2).requires_grad))
        thread.start()
        thread.join()
        assert not (w * 2).requires_grad
    with torch.inference_mode():
        made = w * 2
    assert seen == [True] and made.is_inference() and made.tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match=r"[Ii]nference"):
        (w * made).sum().backward()


def test_the_default_device_is_that_of_new_tensors() -> None:
    torch.set_default_device(D)
    try:
        assert torch.get_default_device() == torch.device(D, 0)
        made = [torch.ones(2), torch.tensor([1]), torch.randn(2), torch.nn.Linear(2, 2).weight, torch.arange(3)]
        assert {str(one.device) for one in made} == {"gradwire:0"}
    finally:
        torch.set_default_device(None)
    with torch.device(D):
        assert torch.zeros(2).device.type == D
    assert torch.zeros(2).device.type == "cpu"


def test_gradwires_own_client_and_the_device_share_the_session(session: Any) -> None:
    own = gw.ones(3) * 2
    trips = session.link.round_trips
    there = torch.gradwire.as_tensor(own) + torch.ones(3, device=D)
    assert session.link.round_trips == trips
    assert there.tolist() == [3, 3, 3] and own.tolist() == [2, 2, 2]
    with gw.no_grad():
        w = torch.ones(3, device=D, requires_grad=True)
        (w * 2).sum().backward()
        assert w.grad is not None and w.grad.tolist() == [2, 2, 2]
