"""Repeated uploads are not sent again, and nothing else changes."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import gradwire as torch
from gradwire._core.session.upload_cache import LEAST_BYTES, SAMPLES, UploadCache


def data(seed=0, nbytes=LEAST_BYTES):
    return np.random.default_rng(seed).standard_normal(nbytes // 4).astype(np.float32)


@pytest.fixture
def skipped(session):
    """A function that tells how many uploads were skipped since it was last called."""
    session.kept_uploads.clear()
    last = [session.stats()["uploads_skipped"]]

    def count():
        before, last[0] = last[0], session.stats()["uploads_skipped"]
        return last[0] - before

    return count


def test_the_third_upload_of_the_same_bytes_is_skipped(session, skipped):
    values = data()
    made, sent = [], []
    for _ in range(5):
        session.flush()
        before = session.link.bytes_sent
        made.append(torch.tensor(values))
        session.flush()
        sent.append(session.link.bytes_sent - before)
    assert skipped() == 3
    assert min(sent[:2]) > values.nbytes
    assert max(sent[2:]) < 400
    assert all(np.array_equal(t.numpy(), values) for t in made)


def test_what_is_made_of_kept_data_is_a_tensor_of_its_own(session, skipped):
    values = data(1)
    made = [torch.tensor(values, requires_grad=i % 2 == 1) for i in range(6)]
    with torch.no_grad():
        for i, tensor in enumerate(made):
            tensor.add_(i)
    assert skipped() == 4
    assert all(np.allclose(t.detach().numpy(), values + i) for i, t in enumerate(made))
    assert all(t.is_leaf and t.grad_fn is None and t._version == 1 for t in made)
    assert [t.requires_grad for t in made] == [False, True] * 3


def test_the_same_bytes_as_another_dtype_or_shape_are_other_data(session, skipped):
    values = data(2)
    for _ in range(4):
        one, two = torch.tensor(values), torch.tensor(values.reshape(2, -1))
        three = torch.tensor(values.view(np.int32))
    assert skipped() == 6
    assert (one.shape, two.shape, three.dtype) == ((values.size,), (2, values.size // 2), torch.int32)
    assert np.array_equal(three.numpy(), values.view(np.int32))


def test_data_that_only_looks_the_same_is_sent(session, skipped):
    step = LEAST_BYTES // SAMPLES
    for i in range(12):
        values = np.zeros(LEAST_BYTES, np.uint8)
        values[step // 2] = i  # where no sample is taken
        assert torch.tensor(values)[step // 2].item() == i
    assert skipped() == 0


def test_an_array_that_the_program_changes_is_sent_anew(session, skipped):
    values = data(3)
    for _ in range(3):
        torch.tensor(values)
    assert skipped() == 1
    values[7] += 1
    assert np.array_equal(torch.tensor(values).numpy(), values)


def test_small_data_is_never_kept(session, skipped):
    for _ in range(5):
        torch.tensor(data(4)[:100])
    assert skipped() == 0


def test_what_is_kept_is_bounded_and_the_oldest_goes(session):
    made = []
    kept = UploadCache(8 * LEAST_BYTES)
    for _ in range(2):
        for seed in range(20):
            kept.find(data(seed), ("float32",), lambda seed=seed: made.append(seed) or seed)
    assert made == list(range(20))
    assert len(kept._kept) == 8
    assert [kept.find(data(s), ("float32",), lambda: "anew") for s in (19, 12)] == [19, 12]
    assert kept.find(data(0), ("float32",), lambda: "anew") == "anew"
    assert kept.find(np.concatenate([data(5)] * 3), ("float32",), lambda: "too much") is None


def test_kept_data_is_released_with_the_session_s_failures(session, skipped):
    values = data(5)
    for _ in range(3):
        torch.tensor(values)
    with pytest.raises(RuntimeError):
        torch.linalg.inv(torch.zeros(2, 2)).sum().item()
    skipped()
    torch.tensor(values)
    assert skipped() == 0
    gc.collect()
    assert np.array_equal(torch.tensor(values).numpy(), values)


def test_keeping_can_be_switched_off(monkeypatch):
    monkeypatch.setenv("GRADWIRE_KEPT_UPLOADS", "0")
    with torch.open_session() as other:
        number = [other.upload(data(6), torch.float32, "cpu") for _ in range(4)]
        assert len(set(number)) == 4
        assert other.stats()["uploads_skipped"] == 0


def test_a_batch_that_comes_every_epoch_is_uploaded_in_two_of_them(session, skipped):
    batches = [data(seed) for seed in range(100, 104)]
    totals = []
    for _ in range(5):
        total = torch.zeros(())
        for batch in batches:
            total = total + torch.tensor(batch).sum()
        totals.append(total.item())
    assert skipped() == 12
    assert len(set(totals)) == 1
