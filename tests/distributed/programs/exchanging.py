"""Every collective once, with what each rank has to have afterwards."""

import datetime

import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=100))
rank, size = dist.get_rank(), dist.get_world_size()
others = range(size)


def own(*shape, dtype=torch.float32):
    return torch.full(shape, rank, dtype=dtype)


def reducing():
    for op, expected in {
        dist.ReduceOp.SUM: sum(others), dist.ReduceOp.MAX: size - 1, dist.ReduceOp.MIN: 0, dist.ReduceOp.PRODUCT: 0,
        dist.ReduceOp.BOR: 3 if size == 4 else 1, dist.ReduceOp.BXOR: 0 if size == 4 else 1,
    }.items():  # fmt: skip
        x = own(3, dtype=torch.int64)
        dist.all_reduce(x, op)
        assert x.tolist() == [expected] * 3, (op, x)
    x = own(2)
    dist.reduce(x, dst=1)
    assert x.tolist() == [sum(others) if rank == 1 else rank] * 2
    x = torch.zeros(2)
    dist.reduce_scatter(x, [own(2) + i for i in others])
    assert x.tolist() == [sum(others) + size * rank] * 2
    dist.reduce_scatter_tensor(x, own(size, 2) + torch.arange(size)[:, None])
    assert x.tolist() == [sum(others) + size * rank] * 2
    tensors = [own(2), own(2, 2)]
    dist.all_reduce_coalesced(tensors)
    assert tensors[1].tolist() == [[sum(others)] * 2] * 2 and tensors[0].tolist() == [sum(others)] * 2


def gathering():
    found = [torch.empty(2) for _ in others]
    dist.all_gather(found, own(2))
    assert [row.tolist() for row in found] == [[i, i] for i in others]
    joined, stacked = torch.empty(size * 2), torch.empty(size, 2)
    dist.all_gather_into_tensor(joined, own(2))
    dist.all_gather_into_tensor(stacked, own(2))
    assert joined.tolist() == [float(i) for i in others for _ in range(2)] == stacked.reshape(-1).tolist()
    listed = [torch.empty(1) for _ in others] if rank == 1 else None
    dist.gather(own(1), listed, dst=1)
    assert listed is None or [x.item() for x in listed] == list(others)
    x = torch.empty(2)
    dist.scatter(x, [torch.full((2,), float(10 + i)) for i in others] if rank == 0 else None, src=0)
    assert x.tolist() == [10 + rank] * 2
    x = own(2, 3)
    dist.broadcast(x.t(), src=1)
    assert x.tolist() == [[1.0] * 3] * 2


def exchanging():
    outputs = [torch.empty(rank + 1) for _ in others]
    dist.all_to_all(outputs, [own(i + 1) for i in others])
    assert [x.tolist() for x in outputs] == [[i] * (rank + 1) for i in others]
    x = torch.empty(sum(i + 1 for i in others) if rank == 0 else 2 * (size - 1) + 1)
    sent = [1 + rank if i == 0 else (1 if i == rank else 2) for i in others]
    received = [i + 1 for i in others] if rank == 0 else [1 + (i != 0 and i != rank) for i in others]
    received = [1 + i if rank == 0 else (1 if i == rank else 2) for i in others]
    x = torch.empty(sum(received))
    dist.all_to_all_single(x, own(sum(sent)), received, sent)
    assert x.tolist() == [i for i in others for _ in range(received[i])]
    left, right = torch.empty(1), (rank + 1) % size
    ops = [dist.P2POp(dist.isend, own(1), right), dist.P2POp(dist.irecv, left, (rank - 1) % size)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    assert left.item() == (rank - 1) % size
    if rank == 0:
        dist.send(torch.arange(3.0), 1, tag=5)
        dist.send_object_list([{"a": 1}, "b"], 1)
    elif rank == 1:
        x, objects = torch.empty(3), [None, None]
        assert dist.recv(x, 0, tag=5) == 0 and x.tolist() == [0, 1, 2]
        dist.recv_object_list(objects, 0)
        assert objects == [{"a": 1}, "b"]


def objects():
    mine = {"rank": rank, "pair": (1, "x"), "tensor": own(2), "none": None, "big": 1 << 70, "bytes": b"\0" * rank}
    found = [None] * size
    dist.all_gather_object(found, mine)
    for i, each in enumerate(found):
        assert each["rank"] == i and each["pair"] == (1, "x") and each["tensor"].tolist() == [i, i]
        assert each["big"] == 1 << 70 and each["bytes"] == b"\0" * i
    listed = [rank, [rank]]
    dist.broadcast_object_list(listed, src=1)
    assert listed == [1, [1]]
    gathered = [None] * size if rank == 0 else None
    dist.gather_object(f"rank {rank}", gathered, dst=0)
    assert gathered is None or gathered == [f"rank {i}" for i in others]
    got = [None]
    dist.scatter_object_list(got, ["x" * i for i in others] if rank == 0 else None, src=0)
    assert got == ["x" * rank]
    try:
        dist.all_gather_object(found, object())
    except TypeError as error:
        assert "builtins.object" in str(error)
    else:
        raise AssertionError("an object was sent")


def groups():
    last = dist.new_group([size - 1])
    first = dist.new_group([0, 1])
    assert dist.get_rank(last) == (0 if rank == size - 1 else -1)
    if rank < 2:
        x = own(1) + 1
        work = dist.all_reduce(x, group=first, async_op=True)
        assert work.wait() and work.get_future().then(lambda f: f.value()[0] * 2).wait().item() == 6
        assert work.is_completed() and work.result()[0] is x
        assert dist.get_process_group_ranks(first) == [0, 1] and dist.get_global_rank(first, 1) == 1
        dist.destroy_process_group(first)
    own_group, all_of_them = dist.new_subgroups(1)
    assert dist.get_world_size(own_group) == 1 and len(all_of_them) == size
    dist.monitored_barrier()


for each in (reducing, gathering, exchanging, objects, groups):
    each()
    dist.barrier()
dist.destroy_process_group()
assert not dist.is_initialized()
dist.init_process_group()
x = own(1)
dist.all_reduce(x)
assert x.item() == sum(others) and dist.get_backend() == "gradwire"
print("done")
