"""``gradwire.amp`` against ``torch.amp``: dtypes under autocast, its state, and the scaler's behaviour."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from tests.side_by_side import Claims, name_of, raises, same

import gradwire as gw

claims = Claims()


def dtypes(lib, **operations) -> dict:
    """The dtype of each operation's result in a bfloat16 region; the class of what it raises."""
    found = {}
    for name, operation in operations.items():
        with lib.autocast("cpu", dtype=lib.bfloat16):
            try:
                found[name] = repr(operation().dtype)
            except Exception as error:
                found[name] = type(error).__mro__[-3].__name__
    return found


def numbers(lib, *shape):
    return (lib.arange(float(np.prod(shape))).reshape(shape) % 7 - 3) / 4


@claims
def products_run_in_the_lower_precision(lib):
    a, b, v = numbers(lib, 3, 4), numbers(lib, 4, 5), numbers(lib, 4)
    f = lib.nn.functional
    x, w = numbers(lib, 2, 3, 8), numbers(lib, 4, 3, 2)
    return dtypes(
        lib, matmul=lambda: a @ b, mm=lambda: lib.mm(a, b),
        linear=lambda: f.linear(a, numbers(lib, 5, 4), numbers(lib, 5)),
        bmm=lambda: lib.bmm(x, x.transpose(1, 2)), addmm=lambda: lib.addmm(numbers(lib, 3, 5), a, b),
        baddbmm=lambda: lib.baddbmm(numbers(lib, 2, 3, 3), x, x.transpose(1, 2)), matrix_vector=lambda: a @ v,
        conv1d=lambda: f.conv1d(x, w),
        conv2d=lambda: f.conv2d(x[None], w[None].transpose(1, 0)[:, :1].expand(2, 2, 3, 2)),
        einsum=lambda: lib.einsum("ij,jk->ik", a, b), prelu=lambda: f.prelu(a, lib.ones(1)),
        attention=lambda: f.scaled_dot_product_attention(x, x, x), tensordot=lambda: lib.tensordot(a, b, 1),
        inner=lambda: lib.inner(a, a),
    )  # fmt: skip


@claims
def losses_run_in_float32(lib):
    f = lib.nn.functional
    x, y = numbers(lib, 3, 4).bfloat16(), numbers(lib, 3, 4).abs().bfloat16()
    classes, ones = lib.tensor([0, 2, 1]), lib.ones(3, dtype=lib.bfloat16)
    return dtypes(
        lib, mse=lambda: f.mse_loss(x, y), l1=lambda: f.l1_loss(x, y), smooth=lambda: f.smooth_l1_loss(x, y),
        cross_entropy=lambda: f.cross_entropy(x, classes), nll=lambda: f.nll_loss(x, classes),
        binary=lambda: f.binary_cross_entropy(y.clamp(0, 1), y.clamp(0, 1)),
        logits=lambda: f.binary_cross_entropy_with_logits(x, y), kl=lambda: f.kl_div(x, y, reduction="batchmean"),
        huber=lambda: f.huber_loss(x, y), poisson=lambda: f.poisson_nll_loss(x, y),
        soft_margin=lambda: f.soft_margin_loss(x, y), hinge=lambda: f.hinge_embedding_loss(x, y),
        margin=lambda: f.margin_ranking_loss(x[:, 0], y[:, 0], ones),
        triplet=lambda: f.triplet_margin_loss(x, y, x + 1), multi=lambda: f.multi_margin_loss(x, classes),
        cosine=lambda: f.cosine_embedding_loss(x, y, ones),
    )  # fmt: skip


@claims
def what_is_in_no_list_runs_in_what_it_is_given(lib):
    a, h = numbers(lib, 3, 4), numbers(lib, 3, 4).bfloat16()
    f = lib.nn.functional
    return dtypes(
        lib, add=lambda: a + h, mul=lambda: h * h, exp=lambda: h.exp(), relu=lambda: f.relu(h), sum=lambda: h.sum(),
        mean=lambda: h.mean(), softmax=lambda: h.softmax(-1), log_softmax=lambda: f.log_softmax(h, -1),
        pow=lambda: h**2, cat=lambda: lib.cat([a, h]), stack=lambda: lib.stack([a, h]), cumsum=lambda: h.cumsum(0),
        gelu=lambda: f.gelu(h), sigmoid=lambda: h.sigmoid(), ones=lambda: lib.ones(3),
        where=lambda: lib.where(h > 0, h, a),
    )  # fmt: skip


@claims
def a_few_others_run_in_float32(lib):
    h, volume = numbers(lib, 3, 3).bfloat16(), numbers(lib, 1, 2, 4, 4, 4).bfloat16()
    pool = lib.nn.functional.max_pool3d
    return dtypes(
        lib, prod=lambda: h.prod(), cdist=lambda: lib.cdist(h, h), trace=lambda: h.trace(),
        quantile=lambda: h.quantile(0.5), inverse=lambda: lib.inverse(h + 4 * lib.eye(3).bfloat16()),
        solve=lambda: lib.linalg.solve(h + 4 * lib.eye(3).bfloat16(), h), pool=lambda: pool(volume, 2),
        pool_with_indices=lambda: pool(volume, 2, return_indices=True)[0],
    )  # fmt: skip


@claims
def float64_is_left_alone(lib):
    a = numbers(lib, 3, 3).double()
    return dtypes(lib, matmul=lambda: a @ a, mse=lambda: lib.nn.functional.mse_loss(a, a), prod=lambda: a.prod())


@claims
def gradients_come_back_in_the_parameters_dtype(lib):
    w = numbers(lib, 4, 3).requires_grad_()
    with lib.autocast("cpu", dtype=lib.bfloat16):
        out = numbers(lib, 2, 4) @ w
        loss = lib.nn.functional.mse_loss(out, lib.zeros(2, 3))
    loss.backward()
    return w.grad, loss, out.grad_fn.name()


@claims
def a_network_trains(lib):
    net = lib.nn.Sequential(lib.nn.Linear(4, 5), lib.nn.LayerNorm(5), lib.nn.ReLU(), lib.nn.Linear(5, 2))
    with lib.no_grad():
        for i, p in enumerate(net.parameters()):
            p.copy_(numbers(lib, *p.shape) / (i + 1))
    with lib.autocast("cpu", dtype=lib.bfloat16):
        out = net(numbers(lib, 3, 4))
    out.float().sum().backward()
    return repr(out.dtype), [repr(p.grad.dtype) for p in net.parameters()]


@claims
def regions_nest(lib):
    a = numbers(lib, 3, 3)
    with lib.autocast("cpu", dtype=lib.bfloat16):
        outer = a @ a
        with lib.autocast("cpu", enabled=False):
            inner = a @ a
        with lib.autocast("cpu", dtype=lib.float16):
            half = a @ a
        after = a @ a
    return [repr(x.dtype) for x in (outer, inner, half, after, a @ a)]


@claims
def state_is_told(lib):
    found = [lib.is_autocast_enabled("cpu"), lib.get_autocast_dtype("cpu"), lib.get_autocast_dtype("cuda")]
    with lib.autocast("cpu", dtype=lib.float16, cache_enabled=False):
        found += [lib.is_autocast_enabled("cpu"), lib.get_autocast_dtype("cpu"), lib.is_autocast_cache_enabled()]
        found += [lib.is_autocast_enabled("cuda"), lib.is_autocast_enabled()]
    found += [lib.is_autocast_enabled("cpu"), lib.get_autocast_dtype("cpu"), lib.is_autocast_cache_enabled()]
    lib.set_autocast_enabled("cpu", True)
    found.append(repr((lib.ones(2, 2) @ lib.ones(2, 2)).dtype))
    lib.set_autocast_enabled("cpu", False)
    return found, lib.amp.is_autocast_available("cpu"), lib.amp.is_autocast_available("nonsense")


@claims
def it_decorates(lib):
    @lib.autocast("cpu", dtype=lib.bfloat16)
    def product(a):
        return a @ a

    return repr(product(lib.ones(2, 2)).dtype), lib.is_autocast_enabled("cpu")


@claims
def a_dtype_that_cannot_be_turns_it_off(lib):
    with lib.autocast("cpu", dtype=lib.float32):
        return repr((lib.ones(2, 2) @ lib.ones(2, 2)).dtype), lib.is_autocast_enabled("cpu")


@claims
def a_device_that_cannot_be_is_refused(lib):
    return raises(lambda: lib.autocast("nonsense")), raises(lambda: lib.autocast(3)), raises(lambda: lib.autocast())


@claims
def a_checkpointed_stretch_runs_the_same_again(lib):
    found = []
    for reentrant in (False, True):
        w = numbers(lib, 3, 3).requires_grad_()
        x = numbers(lib, 2, 3).requires_grad_()
        with lib.autocast("cpu", dtype=lib.bfloat16):
            before = x @ w
            out = lib.utils.checkpoint.checkpoint(lambda a, w=w: lib.relu(a @ w) @ w, before, use_reentrant=reentrant)
        out.float().sum().backward()
        found.append((repr(out.dtype), w.grad, x.grad))
    return found


def _lstm_in_half():
    """Whether PyTorch has an LSTM in half precision for this processor; without oneDNN's it has none."""
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            torch.nn.LSTM(8, 5)(torch.ones(2, 3, 8))
    except RuntimeError:
        return False
    return True


LSTM_IN_HALF = _lstm_in_half()


@claims
def modules_give_the_same_dtypes(lib):
    nn = lib.nn
    x, image = lib.ones(2, 3, 8), lib.ones(2, 3, 8, 8)
    made = {
        "lstm": nn.LSTM(8, 5), "rnn": nn.RNN(8, 5), "attention": nn.TransformerEncoderLayer(8, 2, 16, 0.0),
        "image": nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        "groups": nn.Sequential(nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4), nn.SiLU(), nn.AdaptiveAvgPool2d(1)),
        "plain": nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 1), nn.Sigmoid()),
    }  # fmt: skip
    if not LSTM_IN_HALF:
        del made["lstm"]
    found = {}
    with lib.autocast("cpu", dtype=lib.bfloat16):
        for name, module in made.items():
            out = module(image if name in ("image", "groups") else x)
            found[name] = repr((out[0] if isinstance(out, tuple) else out).dtype)
    return found


def _seen(lib, cast_inputs):
    seen = []

    class Square(lib.autograd.Function):
        @staticmethod
        @lib.amp.custom_fwd(device_type="cpu", cast_inputs=cast_inputs)
        def forward(ctx, x):
            seen.append((repr(x.dtype), lib.is_autocast_enabled("cpu"), repr((x @ x).dtype)))
            ctx.save_for_backward(x)
            return x @ x

        @staticmethod
        @lib.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            seen.append((lib.is_autocast_enabled("cpu"), repr(lib.get_autocast_dtype("cpu"))))
            (x,) = ctx.saved_tensors
            return g @ x

    x = numbers(lib, 2, 2).requires_grad_()
    with lib.autocast("cpu", dtype=lib.bfloat16):
        out = Square.apply(x)
    out.float().sum().backward()
    Square.apply(x)
    return seen


@claims
def custom_functions_meet_the_same_state(lib):
    return _seen(lib, None)


@claims
def custom_functions_can_have_their_inputs_cast(lib):
    return _seen(lib, lib.float32)


@pytest.mark.parametrize("claim", claims, ids=name_of)
def test_it_is_as_under_torch(claim):
    same(claim)


def test_a_parameter_is_cast_once_in_a_region(session):
    w, x = gw.ones(3, 3).requires_grad_(), gw.ones(3, 3)
    with gw.autocast("cpu"):
        x @ w
        before = session.recorded
        w @ w
        assert session.recorded - before == 1
    with gw.autocast("cpu", cache_enabled=False):
        before = session.recorded
        w @ w
        assert session.recorded - before == 3


def test_autocast_for_a_gpu_that_is_not_there_says_so():
    with pytest.warns(UserWarning, match="no GPU"):
        region = gw.autocast("cuda")
    with region:
        assert not gw.is_autocast_enabled("cuda")
    with pytest.warns(UserWarning, match="no GPU"):
        assert not gw.amp.GradScaler().is_enabled()


# The scaler


def train(lib, optimizer: str, overflow_at: tuple[int, ...], steps: int = 7, clip: bool = False, **options) -> dict:
    """A few steps with a scaler; the gradient of some overflows."""
    w = lib.nn.Parameter(numbers(lib, 3, 2) + 0.1)
    kwargs = {"lr": 0.1} | ({"momentum": 0.9} if optimizer == "SGD" else {})
    made = getattr(lib.optim, optimizer)([w], **kwargs)
    scaler = lib.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2, **options)
    scales, results = [], []
    for step in range(steps):
        made.zero_grad()
        loss = ((numbers(lib, 4, 3) @ w) ** 2).mean() * (float("inf") if step in overflow_at else 1.0)
        scaler.scale(loss).backward()
        if clip:
            scaler.unscale_(made)
            lib.nn.utils.clip_grad_norm_([w], 0.1)
        results.append(scaler.step(made))
        scaler.update()
        scales.append(scaler.get_scale() if step % 3 == 0 else None)
    state = made.state_dict()["state"].get(0, {})
    kept = {k: v.tolist() if hasattr(v, "tolist") else float(v) for k, v in state.items() if v is not None}
    return {"w": w.detach(), "scales": scales, "results": results, "scaler": scaler.state_dict(), "state": kept}


@pytest.mark.parametrize("overflow_at", [(), (0,), (2,), (0, 1, 4)])
@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "NAdam", "ASGD", "Adafactor", "RMSprop"])
def test_a_scaler_skips_what_torchs_skips(optimizer, clip, overflow_at):
    def course(lib):
        return train(lib, optimizer, overflow_at, clip=clip)

    same(course)


def test_a_scaler_that_is_off_changes_nothing():
    def course(lib):
        return train(lib, "Adam", (), enabled=False)

    same(course)


def test_a_step_with_a_scaler_makes_one_round_trip(round_trips):
    w = gw.nn.Parameter(gw.ones(3, 2))
    made, scaler = gw.optim.Adam([w]), gw.amp.GradScaler("cpu")
    for _ in range(3):
        made.zero_grad()
        loss = ((gw.ones(4, 3) @ w) ** 2).mean()
        scaler.scale(loss).backward()
        scaler.step(made)
        scaler.update()
        loss.item()
    assert round_trips() == 3


def test_an_optimizer_of_the_programs_own_is_not_called_when_a_step_is_skipped():
    calls = []

    class Mine(gw.optim.Optimizer):
        def step(self, closure=None):
            calls.append(1)

    w = gw.nn.Parameter(gw.ones(2))
    scaler = gw.amp.GradScaler("cpu")
    mine = Mine([w], {})
    for factor in (1.0, float("inf"), 1.0):
        w.grad = None
        scaler.scale((w * factor).sum()).backward()
        scaler.step(mine)
        scaler.update()
    assert len(calls) == 2


@pytest.mark.parametrize(
    "misuse",
    [
        lambda lib, s, o, w: (s.unscale_(o), s.unscale_(o)),
        lambda lib, s, o, w: (s.step(o), s.step(o)),
        lambda lib, s, o, w: (s.step(o), s.unscale_(o)),
        lambda lib, s, o, w: s.update(),
        lambda lib, s, o, w: s.step(o, closure=lambda: 1),
        lambda lib, s, o, w: s.load_state_dict({}),
        lambda lib, s, o, w: lib.amp.GradScaler("cpu").step(o),
        lambda lib, s, o, w: s.scale("text"),
        lambda lib, s, o, w: s.scale(3),
        lambda lib, s, o, w: lib.amp.GradScaler("cpu", growth_factor=0.5),
        lambda lib, s, o, w: (o.zero_grad(), s.step(o)),
    ],
)
def test_misuse_is_refused_as_under_torch(misuse):
    def attempt(lib):
        w = lib.nn.Parameter(lib.ones(2))
        made, scaler = lib.optim.SGD([w], lr=0.1), lib.amp.GradScaler("cpu")
        scaler.scale(w.sum()).backward()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return raises(lambda: misuse(lib, scaler, made, w))

    same(attempt)


def test_float16_gradients_are_not_unscaled():
    def attempt(lib):
        w = lib.nn.Parameter(lib.ones(2, dtype=lib.float16))
        scaler = lib.amp.GradScaler("cpu")
        scaler.scale((w * 2).sum()).backward()
        return raises(lambda: scaler.unscale_(lib.optim.SGD([w], lr=0.1)))

    same(attempt)


def test_a_scaler_is_saved_and_loaded():
    def course(lib):
        first = lib.amp.GradScaler("cpu", init_scale=16.0, growth_interval=3)
        first.scale(lib.ones(1))
        second = lib.amp.GradScaler("cpu")
        second.load_state_dict(first.state_dict())
        return second.state_dict(), second.scale(lib.ones(2)), second.get_scale()

    same(course)


def test_the_gpus_lists_are_those_torch_tests():
    from torch.testing._internal.autocast_test_lists import AutocastTestLists

    from gradwire_protocol.autocast import Precision
    from gradwire_protocol.table import TABLE

    lists = AutocastTestLists(torch.device("cpu"))
    ours = {name: op.autocast.cuda for name, op in TABLE.items()}
    for attributes, policy in (
        (("torch_fp16", "nn_fp16", "linalg_fp16"), Precision.LOWER), (("torch_fp32", "nn_fp32"), Precision.FLOAT32),
        (("torch_need_autocast_promote",), Precision.WIDEST),
    ):  # fmt: skip
        names = {entry[0] for attribute in attributes for entry in getattr(lists, attribute)}
        assert {n for n in names & set(TABLE) if ours.get(n) != policy and n != "convolution"} == set()
    assert all(ours[entry[0]] is Precision.REFUSED for entry in lists.banned)
