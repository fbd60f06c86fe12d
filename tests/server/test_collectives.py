"""Collectives of 2 and 4 sessions on one server, in threads and in worker processes: values, errors, bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.live_server import LiveServer, live_server

from .ranks import WAIT_S, Rank, Ranks, ranks, until


@pytest.fixture(scope="module", params=["inline", "process"])
def server(request: pytest.FixtureRequest) -> Iterator[LiveServer]:
    settings = {"worker_per": "session"} if request.param == "process" else {}
    with live_server(session_host=request.param, **settings) as found:
        yield found


@pytest.fixture(scope="module", params=[2, 4])
def world(server: LiveServer, request: pytest.FixtureRequest) -> Iterator[Ranks]:
    with ranks(server, request.param) as found:
        found.open()
        yield found


def drawn(rank: int, shape: Any, dtype: str = "float32") -> np.ndarray[Any, Any]:
    """Values of a rank, small enough for products."""
    numbers = np.random.default_rng(rank).integers(-3, 4, shape)
    if dtype == "bool":
        return numbers > 0
    return (numbers + 4 if dtype == "uint8" else numbers).astype(dtype if dtype != "bfloat16" else "float32")


def values(reply: dict[str, Any]) -> np.ndarray[Any, Any]:
    assert not reply.get("errors"), reply
    return np.array(reply["values"][0]["values"])


REDUCED = {
    "sum": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum, "band": np.bitwise_and,
    "bor": np.bitwise_or, "bxor": np.bitwise_xor,
}  # fmt: skip


@pytest.mark.parametrize("op", REDUCED)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "uint8", "bool"])
def test_all_ranks_get_the_reduction_of_all(world: Ranks, op: str, dtype: str) -> None:
    if op.startswith("b") and dtype not in ("int64", "uint8", "bool"):
        pytest.skip("of bits")
    mine = [drawn(rank.rank, 7, dtype) for rank in world]
    wanted = REDUCED[op].reduce(mine, dtype=mine[0].dtype)
    for reply in world.do(lambda r: r.run("all_reduce_", mine[r.rank].tolist(), "world", op, dtype=dtype)):
        assert values(reply).tolist() == wanted.tolist()


def test_an_average_and_complex_numbers(world: Ranks) -> None:
    mine = [drawn(rank.rank, 5) for rank in world]
    for reply in world.do(lambda r: r.run("all_reduce_", mine[r.rank].tolist(), "world", "avg")):
        np.testing.assert_allclose(values(reply), np.mean(mine, 0), rtol=1e-6)
    pairs = [[[float(r), 1.0], [2.0, -float(r)]] for r in range(len(world))]
    for reply in world.do(lambda r: r.run("all_reduce_", pairs[r.rank], "world", dtype="complex64")):
        assert values(reply).tolist() == np.sum(pairs, 0).tolist()


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 5), (200_003,)], ids=str)
def test_shapes_that_do_not_divide(world: Ranks, shape: tuple[int, ...]) -> None:
    """Of whole numbers, so that the order does not matter."""
    count = int(np.prod(shape))
    fill = [["full", [list(shape), "float"]], ["all_reduce_", [0, "world"]], ["sum", [0]]]
    replies = world.do(lambda r: r.apply(fill, [1], scalars=[float(r.rank + 1)]))
    assert [values(reply).item() for reply in replies] == [count * sum(range(1, len(world) + 1))] * len(world)


def test_all_ranks_and_all_runs_have_the_same_bits(world: Ranks) -> None:
    mine = [np.random.default_rng(r).standard_normal(1001).tolist() for r in range(len(world))]
    first = [values(reply).tobytes() for reply in world.do(lambda r: r.run("all_reduce_", mine[r.rank], "world"))]
    again = [values(reply).tobytes() for reply in world.do(lambda r: r.run("all_reduce_", mine[r.rank], "world"))]
    assert len({*first, *again}) == 1


@pytest.mark.parametrize("root", [0, 1])
def test_broadcast_and_reduce(world: Ranks, root: int) -> None:
    mine = [drawn(rank.rank, (3, 2)) for rank in world]

    def run(rank: Rank, op: str) -> Any:
        return rank.run(op, mine[rank.rank].tolist(), "world", root, shape=[3, 2])

    for reply in world.do(lambda r: run(r, "broadcast_")):
        assert values(reply).tolist() == mine[root].tolist()
    for rank, reply in enumerate(world.do(lambda r: run(r, "reduce_"))):
        assert values(reply).tolist() == (sum(mine) if rank == root else mine[rank]).tolist()  # type: ignore[union-attr]


def test_gathering_and_scattering(world: Ranks) -> None:
    size = len(world)
    mine = [drawn(r, (size * 2, 3)) for r in range(size)]

    def run(rank: Rank, op: str, *args: Any) -> Any:
        return rank.run(op, mine[rank.rank].tolist(), "world", *args, shape=[size * 2, 3])

    for reply in world.do(lambda r: run(r, "all_gather", size)):
        assert values(reply).tolist() == np.stack(mine).tolist()
    for rank, reply in enumerate(world.do(lambda r: run(r, "gather_to", 1, r.rank, size))):
        assert values(reply).tolist() == (np.stack(mine).tolist() if rank == 1 else [])
    for rank, reply in enumerate(world.do(lambda r: run(r, "reduce_scatter", size))):
        assert values(reply).tolist() == sum(mine)[rank * 2 : rank * 2 + 2].tolist()  # type: ignore[index]
    even = [2] * size
    for rank, reply in enumerate(world.do(lambda r: run(r, "all_to_all", even, even))):
        assert values(reply).tolist() == np.concatenate([m[rank * 2 : rank * 2 + 2] for m in mine]).tolist()
    parts = [["upload", ["payload", "float32", [2]]], ["upload", ["payload", "float32", [size, 2]]]]

    def scatter(rank: Rank) -> Any:
        given = parts if rank.rank == 1 else parts[:1]
        payloads = [{"values": [0.0, 0.0]}, {"values": [[r, r + 0.5] for r in range(size)]}]
        call = ["scatter_from_", [0, "world", 1, *([1] if rank.rank == 1 else [])]]
        return rank.apply([*given, call], [0], payloads=payloads[: len(given)])

    for rank, reply in enumerate(world.do(scatter)):
        assert values(reply).tolist() == [rank, rank + 0.5]


def test_uneven_parts(world: Ranks) -> None:
    size = len(world)
    sent = [[(a + b) % 3 for b in range(size)] for a in range(size)]

    def run(rank: Rank) -> Any:
        rows = sum(sent[rank.rank])
        received = [sent[other][rank.rank] for other in range(size)]
        return rank.run("all_to_all", [float(rank.rank)] * rows, "world", sent[rank.rank], received, shape=[rows])

    for rank, reply in enumerate(world.do(run)):
        assert values(reply).tolist() == [other for other in range(size) for _ in range(sent[other][rank])]


def test_send_and_receive_and_a_barrier(world: Ranks) -> None:
    def run(rank: Rank) -> Any:
        if rank.rank == 0:
            return rank.run("send", [1.0, 2.0], "world", 1, 7)
        return rank.run("recv_", [0.0, 0.0], "world", 0, 7)

    assert [values(reply).tolist() for reply in world.do(run, 0, 1)] == [[1, 2], [1, 2]]
    assert not any(reply.get("errors") for reply in world.do(lambda r: r.apply([["barrier", ["world"]]])))


def test_bytes_of_a_ring(world: Ranks) -> None:
    """A rank sends 2 (n - 1) / n of the tensor, headers within 10 percent of that."""
    before = [rank.counts() for rank in world]
    count = 1_000_000
    assert not any(
        reply.get("errors")
        for reply in world.do(lambda r: r.apply([["ones", [[count]]], ["all_reduce_", [0, "world"]]]))
    )
    least = 2 * (len(world) - 1) / len(world) * count * 4
    for rank, earlier in zip(world, before, strict=True):
        now = rank.counts()
        assert least * 0.99 <= now["bytes_sent"] - earlier["bytes_sent"] <= least * 1.01
        assert now["wire_bytes_sent"] - earlier["wire_bytes_sent"] <= least * 1.1


def test_others_compute_while_a_rank_waits(server: LiveServer, world: Ranks) -> None:
    """More ranks wait than the server computes at a time."""
    waiting = world.pool.submit(lambda: world.do(lambda r: r.run("all_reduce_", [1.0], "world"), *range(1, len(world))))
    with ranks(server, 1) as (other,):
        assert values(other.run("neg_", [1.0])).tolist() == [-1]
    world[0].run("all_reduce_", [1.0], "world")
    assert all(values(reply).tolist() == [len(world)] for reply in waiting.result(60))


# Errors


def test_without_a_group(server: LiveServer) -> None:
    with ranks(server, 1) as (alone,):
        (error,) = alone.run("all_reduce_", [1.0], "world")["errors"]
        assert (error["code"], error["op"]) == ("group_not_open", "all_reduce_")
        assert "'world'" in error["detail"]


def test_a_rank_that_does_something_else_is_named_and_the_group_is_over(server: LiveServer) -> None:
    with ranks(server, 2) as pair:
        for length, dtype, op in ((3, "float32", "sum"), (2, "float64", "sum"), (2, "float32", "max")):
            pair.open()

            def run(rank: Rank, length: int = length, dtype: str = dtype, op: str = op) -> Any:
                if rank.rank:
                    return rank.run("all_reduce_", [0.0] * length, "world", op, dtype=dtype)
                return rank.run("all_reduce_", [0.0, 0.0], "world", "sum")

            errors = [reply["errors"][0] for reply in pair.do(run)]
            assert {error["code"] for error in errors} == {"collective_failed"}
            assert any(
                f"all_reduce_({dtype}[{length}], {op})" in e["detail"] and "all_reduce_(float32[2], sum)" in e["detail"]
                and "rank 1" in e["detail"] and pair[1].id in e["detail"]
                for e in errors
            )  # fmt: skip
            (after,) = pair[0].run("all_reduce_", [0.0], "world")["errors"]
            assert after["code"] == "group_not_open"
            assert "open it again" in after["detail"]
        pair.open()
        assert [values(r).tolist() for r in pair.do(lambda r: r.run("all_reduce_", [1.0], "world"))] == [[2], [2]]


def test_a_rank_that_never_comes(server: LiveServer) -> None:
    with ranks(server, 2) as pair:
        problem = pair[0].open(2, timeout_s=0.3)
        assert problem.status_code == 409
        assert "rank 1 did not come within 0.3 s" in problem.json()["detail"]
        pair.open(timeout_s=0.5)
        (error,) = pair[0].run("all_reduce_", [1.0], "world")["errors"]
        assert error["code"] == "collective_failed"
        assert error["extra"]["rank"] == 1
        assert f"rank 1 (session {pair[1].id}" in error["detail"]
        (error,) = pair[1].run("all_reduce_", [1.0], "world")["errors"]
        assert error["code"] == "collective_failed"
        assert "rank 0 ended in all_reduce_" in error["detail"]


def test_a_rank_whose_session_ends(server: LiveServer) -> None:
    with ranks(server, 2) as pair:
        pair.open()
        pair[1].http.delete(pair[1].session)
        (error,) = pair[0].run("all_reduce_", [1.0], "world")["errors"]
        assert error["code"] == "collective_failed"
        assert pair[1].id in error["detail"] or "rank 1" in error["detail"]


def test_two_sessions_cannot_be_one_rank(server: LiveServer) -> None:
    with ranks(server, 2) as pair:
        first = pair.pool.submit(lambda: pair[0].open(2))
        until(lambda: server.app.state.server.registry.rendezvous._opening, "a group that is being opened")
        pair[1].rank = 0
        second = pair[1].open(2)
        assert second.status_code == 409
        assert f"is session {pair[0].id} already" in second.json()["detail"]
        third = pair[1].open(3)
        assert "with 2 ranks" in third.json()["detail"]
        pair[1].rank = 1
        assert pair[1].open(2).status_code == first.result(WAIT_S).status_code == 201


def test_a_wait_can_be_cancelled(server: LiveServer) -> None:
    with ranks(server, 2) as pair:
        for attempt in range(20):
            group = f"attempt{attempt}"
            pair.open(group, timeout_s=3)
            waiting = pair.pool.submit(lambda group=group: pair[0].run("all_reduce_", [1.0], group))
            until(lambda: pair.http.delete(f"{pair[0].session}/frames").json()["frames"], "a frame to cancel")
            (error,) = waiting.result(WAIT_S)["errors"]
            assert error["code"] == "cancelled"
            (error,) = pair[1].run("all_reduce_", [1.0], group)["errors"]
            if "the frame was cancelled" in error["detail"]:
                return
            assert "did not come" in error["detail"]  # it was cancelled before it began to wait
        raise AssertionError(f"none of {attempt + 1} frames was cancelled while it waited")


def test_closing_a_group(server: LiveServer) -> None:
    with ranks(server, 2) as pair:
        pair.open()
        assert pair.http.delete(f"{pair[0].session}/groups/world").status_code == 204
        assert pair.http.delete(f"{pair[0].session}/groups/world").status_code == 404
        (error,) = pair[1].run("all_reduce_", [1.0], "world")["errors"]
        assert "closed the group" in error["detail"]


def test_another_tenant_is_in_another_group(server: LiveServer) -> None:
    with ranks(server, 1) as (mine,), server.http(server.other_key) as stranger:
        theirs = Rank(stranger, stranger.post("/v1/sessions", json={}).headers["location"], 0)
        assert mine.open(1).status_code == 201
        assert theirs.open(1).status_code == 201
        assert theirs.counts()["world_size"] == 1
