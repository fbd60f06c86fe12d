"""A job of one rank, which needs no server for it, and arguments that are refused whatever the number of ranks."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta

import numpy as np
import pytest

import gradwire as gw
from gradwire import distributed as dist
from gradwire import nn
from gradwire.distributed import encoding, rendezvous
from gradwire.nn.parallel import DistributedDataParallel
from gradwire.nn.parallel.gradient_average import buckets_of
from tests.live_server import SOURCES


@pytest.fixture
def alone_in_group(session, monkeypatch):
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    dist.init_process_group("nccl")
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def test_one_rank_is_told_what_it_is(alone_in_group):
    assert dist.is_initialized()
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "nccl")
    assert dist.get_backend_config() == "cpu:nccl,cuda:nccl"
    assert dist.group.WORLD is dist.GroupMember.WORLD
    assert dist.group.WORLD.size() == 1
    assert dist.new_group([0]).ranks == [0]
    assert dist.get_pg_count() == 2
    assert not dist.is_torchelastic_launched()
    with pytest.raises(ValueError, match="called before"):
        dist.init_process_group()


def test_collectives_of_one_rank_leave_what_there_is(alone_in_group):
    x = gw.arange(4.0)
    for call in (dist.all_reduce, lambda t: dist.reduce(t, 0), lambda t: dist.broadcast(t, 0)):
        call(x)
    assert x.tolist() == [0, 1, 2, 3]
    y, row = gw.zeros(4), gw.zeros(1, 4)
    for call in (
        lambda: dist.all_gather([y], x), lambda: dist.gather(x, [y]), lambda: dist.scatter(y, [x]),
        lambda: dist.reduce_scatter(y, [x]), lambda: dist.reduce_scatter_tensor(y, x),
        lambda: dist.all_to_all([y], [x]), lambda: dist.all_to_all_single(y, x),
        lambda: dist.all_gather_into_tensor(y, x),
    ):  # fmt: skip
        y.zero_()
        call()
        assert y.tolist() == [0, 1, 2, 3]
    dist.all_gather_into_tensor(row, x)
    assert row.tolist() == [[0, 1, 2, 3]]
    dist.barrier()
    work = dist.all_reduce(x, async_op=True)
    assert work.wait(timedelta(seconds=1))
    assert work.is_completed()
    objects = [None]
    dist.all_gather_object(objects, {"a": (1, x)})
    assert objects[0]["a"][1].tolist() == [0, 1, 2, 3]


def test_a_module_of_one_rank_trains_as_it_does_alone(alone_in_group):
    inner = nn.Linear(3, 2)
    model = DistributedDataParallel(inner, device_ids=[0])
    assert [name for name, _ in model.named_parameters()] == ["module.weight", "module.bias"]
    with model.no_sync():
        model(gw.ones(1, 3)).sum().backward()
    model(gw.ones(1, 3)).sum().backward()
    assert inner.weight.grad.tolist() == [[2.0] * 3] * 2
    with model.join():
        pass
    with pytest.raises(RuntimeError, match="parameters that require grad"):
        DistributedDataParallel(nn.ReLU())
    with pytest.raises(NotImplementedError, match="device_mesh"):
        DistributedDataParallel(inner, device_mesh=1)
    with pytest.raises(ValueError, match="one device"):
        DistributedDataParallel(inner, device_ids=[0, 1])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: dist.all_reduce([x]), TypeError, "tensor is a tensor, not list"),
        (lambda x: dist.all_reduce(x, "sum"), TypeError, "op is a torch.distributed.ReduceOp"),
        (lambda x: dist.all_reduce(x, dist.ReduceOp.BAND), RuntimeError, "'band' is not defined for floating point"),
        (lambda x: dist.all_reduce(x, dist.ReduceOp.PREMUL_SUM), NotImplementedError, "PREMUL_SUM"),
        (lambda x: dist.all_reduce(x, group=3), TypeError, "group is a process group or None"),
        (lambda x: dist.broadcast(x), ValueError, "src or group_src is needed"),
        (lambda x: dist.broadcast(x, 1), ValueError, r"src=1 is none of the group's ranks \[0\]"),
        (lambda x: dist.broadcast(x, 0, group_src=0), ValueError, "two names of one rank"),
        (lambda x: dist.all_gather([], x), ValueError, "has 0 tensors, one for each of 1 ranks"),
        (lambda x: dist.all_gather([gw.zeros(3)], x), ValueError, r"shape \[3\], the tensor \[4\]"),
        (lambda x: dist.all_gather([x.int()], x), RuntimeError, "is int32, the tensor float32"),
        (lambda x: dist.all_gather_into_tensor(gw.zeros(3), x), ValueError, "the output has 3 elements"),
        (lambda x: dist.reduce_scatter_tensor(gw.zeros(3), x), ValueError, "the input has 4 elements"),
        (lambda x: dist.all_to_all_single(x, x, [3], [4]), ValueError, r"sum up to 4, not \[3\]"),
        (lambda x: dist.send(x, 0), ValueError, "dst is this rank itself"),
        (lambda x: dist.recv(x), NotImplementedError, "from any rank"),
        (lambda x: dist.all_gather_object([None], object()), TypeError, "plain data, not builtins.object"),
        (lambda x: dist.new_group([1]), ValueError, "ranks go from 0 to 0, not 1"),
        (lambda x: dist.new_group([0], use_local_synchronization=True), NotImplementedError, "all ranks call"),
        (lambda x: dist.new_subgroups(2), ValueError, "1 ranks cannot be cut into groups of 2"),
        (lambda x: dist.TCPStore("localhost", 1), NotImplementedError, "torch.distributed.TCPStore"),
        (lambda x: dist.init_device_mesh("cpu", (1,)), NotImplementedError, "init_device_mesh"),
    ],
)
def test_wrong_arguments_are_refused_by_name(alone_in_group, call, error, text):
    with pytest.raises(error, match=text):
        call(gw.arange(4.0))


@pytest.mark.parametrize(
    ("variables", "arguments", "text"),
    [
        ({}, {}, "variable RANK, which is not set: start the program with `gradwire run"),
        ({"RANK": "0"}, {}, "WORLD_SIZE"),
        ({"RANK": "x", "WORLD_SIZE": "1"}, {}, "is a number from 0, not 'x'"),
        ({"RANK": "0", "WORLD_SIZE": "2"}, {}, "MASTER_ADDR"),
        ({"RANK": "2", "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1"}, {}, "ranks go from 0 to 1"),
        ({}, {"init_method": "tcp://a:1"}, "needs rank= and world_size="),
        ({}, {"init_method": "a:1"}, "init_method is env://"),
        ({}, {"backend": "gluu"}, "backend 'gluu' is unknown"),
        ({}, {"rank": 0, "world_size": 0}, "world_size is 0"),
        ({}, {"timeout": timedelta(0), "rank": 0, "world_size": 1}, "timeout is above 0"),
    ],
)
def test_a_job_that_is_not_described_is_refused(monkeypatch, variables, arguments, text):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=text):
        dist.init_process_group(**arguments)
    assert not dist.is_initialized()


def test_without_a_group_collectives_say_what_to_call():
    for call in (dist.get_rank, dist.get_world_size, dist.barrier, dist.destroy_process_group):
        with pytest.raises(ValueError, match="init_process_group"):
            call()


def test_ranks_of_one_job_name_it_alike(monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "2")
    found = [rendezvous.find("tcp://host:1/" + "x" * 300, rank, 2).name for rank in range(2)]
    assert found[0] == found[1]
    assert len(found[0]) <= rendezvous.PREFIX_LENGTH + 2
    assert found[0].endswith(":2")
    assert "/" not in found[0]


def test_several_ranks_are_not_begun_on_an_embedded_server_of_one(session):
    with pytest.raises(RuntimeError, match="set GRADWIRE_URL for all of them"):
        dist.init_process_group(init_method="tcp://a:1", rank=0, world_size=2)


def test_objects_come_back_as_they_were(session):
    for value in (
        None, True, -3, 1 << 100, 2.5, float("inf"), 1 + 2j, "é", b"\0", [1, [2]], (1, (2,)), {1: "a", (1, 2): None},
        {1, 2}, frozenset("ab"), gw.float32, gw.Size([1, 2]), gw.device("cpu"),
    ):  # fmt: skip
        found = encoding.decode(encoding.encode(value))
        assert found == value
        assert type(found) is type(value)
    array = np.arange(6.0).reshape(2, 3)
    assert (encoding.decode(encoding.encode(array)) == array).all()
    tensor = encoding.decode(encoding.encode(gw.ones(2, dtype=gw.bfloat16).requires_grad_()))
    assert tensor.dtype is gw.bfloat16
    assert tensor.requires_grad
    for data in (b"", b"\xc1", b"\x91\xa1x", b"\x92\xa5array\x01"):
        with pytest.raises(ValueError, match=r"no object of a collective|no kind of object"):
            encoding.decode(data)


def test_buckets_begin_small_and_with_the_last_parameters(session):
    params = [nn.Parameter(gw.zeros(n)) for n in (100, 200, 300_000, 10)]
    assert [[p.numel() for p in bucket] for bucket in buckets_of(params, 1 << 20)] == [[10], [300_000], [200, 100]]
    assert [[p.numel() for p in bucket] for bucket in buckets_of(params, 25 << 20)] == [[10], [300_000, 200, 100]]
    mixed = [nn.Parameter(gw.zeros(2, dtype=d)) for d in (gw.float32, gw.float64, gw.float32)]
    assert [len(bucket) for bucket in buckets_of(mixed, 1 << 20)] == [2, 1]


def test_names_that_are_absent_are_refused_where_they_are_called():
    from gradwire.distributed.algorithms.join import Join
    from gradwire.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy
    from gradwire.distributed.fsdp.wrap import size_based_auto_wrap_policy
    from gradwire.distributed.rpc import init_rpc

    assert ShardingStrategy.FULL_SHARD is not None
    assert not isinstance(nn.Linear(1, 1), FullyShardedDataParallel)
    for absent in (Join, FullyShardedDataParallel, size_based_auto_wrap_policy, init_rpc):
        with pytest.raises(NotImplementedError, match=rf"torch\.distributed\..*{absent.__name__} is not supported"):
            absent(1)
    with pytest.raises(AttributeError):
        dist.invented


def test_nothing_of_it_is_imported_with_gradwire():
    code = "import sys, gradwire, gradwire.nn.parallel; print([m for m in sys.modules if 'distributed' in m])"
    environment = os.environ | {"PYTHONPATH": SOURCES}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_one_rank_needs_no_launcher(session, tmp_path):
    ways = [
        {"init_method": "tcp://127.0.0.1:29500"}, {"init_method": f"file://{tmp_path}/meet"},
        {"store": dist.HashStore()}, {"store": dist.PrefixStore("job", dist.HashStore())},
    ]  # fmt: skip
    for way in ways:
        assert not dist.is_initialized()
        with pytest.raises(ValueError, match="not initialised"):
            dist.get_rank()
        dist.init_process_group("gloo", rank=0, world_size=1, **way)
        assert (dist.get_rank(), dist.get_world_size()) == (0, 1)
        dist.destroy_process_group()
    with pytest.raises(NotImplementedError, match="for one rank"):
        dist.init_process_group("gloo", rank=0, world_size=2, store=dist.HashStore())


def test_gradients_pass_through_collectives_of_one_rank(alone_in_group):
    from gradwire.distributed import _functional_collectives as functional
    from gradwire.distributed.nn import functional as through

    for call in (
        through.all_reduce, lambda x: through.all_gather(x)[0], lambda x: through.broadcast(x, 0),
        lambda x: through.reduce_scatter(x, [x]), lambda x: through.all_to_all([x], [x])[0],
        lambda x: through.all_to_all_single(x, x), lambda x: through.gather(x)[0], lambda x: through.scatter([x]),
        lambda x: through.reduce(x, 0), lambda x: functional.all_reduce(x, "sum", dist.group.WORLD),
        lambda x: functional.all_gather_tensor(x, 0, dist.group.WORLD),
        lambda x: functional.reduce_scatter_tensor(x, "avg", 0, dist.group.WORLD),
    ):  # fmt: skip
        x = gw.arange(4.0).requires_grad_()
        found = call(x)
        assert found.tolist() == [0, 1, 2, 3]
        (found * gw.arange(4.0)).sum().backward()
        assert x.grad.tolist() == [0, 1, 2, 3]
    rows = functional.all_to_all_single(gw.ones(2, 3), None, None, dist.group.WORLD)
    assert functional.wait_tensor(rows).tolist() == [[1.0] * 3] * 2


def test_stores_keep_values():
    inner = dist.HashStore()
    store = dist.PrefixStore("a", inner)
    store.set("k", "v")
    assert store.get("k") == inner.get("a/k") == b"v"
    assert [store.add("n", 2), store.add("n", 3)] == [2, 5]
    assert store.check(["k", "n"])
    assert inner.compare_set("new", "", "x") == b"x"
    assert inner.compare_set("new", "y", "z") == b"x"
    assert store.delete_key("k")
    assert not store.delete_key("k")
    assert inner.num_keys() == 2
    with pytest.raises(RuntimeError, match="did not come"):
        inner.wait(["gone"], timedelta(milliseconds=10))


def test_checkpoint_wrapper_keeps_names_and_gradients(session):
    from gradwire.distributed.algorithms._checkpoint import checkpoint_wrapper as wrapping

    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    x = gw.ones(2, 3)
    net(x).sum().backward()
    names, expected = [name for name, _ in net.named_parameters()], [p.grad.tolist() for p in net.parameters()]
    net.zero_grad()
    wrapping.apply_activation_checkpointing(net, check_fn=lambda module: isinstance(module, nn.Linear))
    assert isinstance(net[0], wrapping.CheckpointWrapper)
    assert net[0].in_features == 3
    net(x).sum().backward()
    assert [p.grad.tolist() for p in net.parameters()] == expected
    assert list(net.state_dict()) == names
    net.load_state_dict(net.state_dict())
