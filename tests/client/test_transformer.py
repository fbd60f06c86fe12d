"""Attention and transformers against PyTorch, with the same weights and inputs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from tests.side_by_side import Claims, built_in, name_of, same

import gradwire

claims = Claims()

CLOSE = dict(rtol=2e-4, atol=2e-5)


def ours(value):
    """The same in gradwire: tensors by value."""
    if isinstance(value, torch.Tensor):
        return gradwire.tensor(value.detach().numpy(), requires_grad=value.requires_grad)
    return value


def assert_same(found, expected) -> None:
    if expected is None:
        assert found is None
        return
    assert tuple(found.shape) == tuple(expected.shape)
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), **CLOSE)


def run_both(theirs, mine, args, kwargs) -> None:
    """Results, and the gradients of inputs and parameters."""
    torch.manual_seed(3)
    crossed: dict[int, object] = {}

    def cross(value):
        if not isinstance(value, torch.Tensor):
            return value
        return crossed.setdefault(id(value), ours(value))  # what is one tensor there is one here

    expected = theirs(*args, **kwargs)
    found = mine(*[cross(a) for a in args], **{k: cross(v) for k, v in kwargs.items()})
    expected, found = (x if isinstance(x, tuple) else (x,) for x in (expected, found))
    for f, e in zip(found, expected, strict=True):
        assert_same(f, e)
    weight = torch.randn(expected[0].shape)
    (expected[0] * weight).sum().backward()
    (found[0] * ours(weight)).sum().backward()
    for given in [*args, *kwargs.values()]:
        if isinstance(given, torch.Tensor) and given.grad is not None:
            assert_same(crossed[id(given)].grad, given.grad)
            given.grad = None


def made_alike(make):
    torch.manual_seed(0)
    theirs, mine = make(torch.nn), make(gradwire.nn)
    assert list(mine.state_dict()) == list(theirs.state_dict())
    mine.load_state_dict({name: gradwire.from_numpy(value.numpy()) for name, value in theirs.state_dict().items()})
    assert repr(mine) == repr(theirs)
    return theirs, mine


def compare(make, *args, training=False, **kwargs) -> None:
    theirs, mine = made_alike(make)
    theirs.train(training), mine.train(training)
    run_both(theirs, mine, args, kwargs)
    for (name, t), (_, m) in zip(theirs.named_parameters(), mine.named_parameters(), strict=True):
        if t.grad is not None:
            np.testing.assert_allclose(m.grad.numpy(), t.grad.numpy(), err_msg=name, **CLOSE)


def drawn(*shape):
    return torch.randn(shape, requires_grad=True)


def padding(batch, length):
    mask = torch.zeros(batch, length, dtype=torch.bool)
    mask[0, -2:] = True
    return mask


# Attention

FORMS = [
    {}, {"bias": False}, {"add_bias_kv": True}, {"add_zero_attn": True}, {"batch_first": True},
    {"add_bias_kv": True, "add_zero_attn": True, "batch_first": True}, {"kdim": 5, "vdim": 7},
    {"kdim": 5, "vdim": 7, "bias": False, "add_bias_kv": True},
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS, ids=lambda f: ",".join(f) or "plain")
@pytest.mark.parametrize("need_weights", [True, False], ids=["weights", "no weights"])
def test_attention_with_every_mask(form, need_weights) -> None:
    rows, cols, batch, heads = 4, 6, 3, 2
    torch.manual_seed(1)

    def tensor(length, features):
        return drawn(batch, length, features) if form.get("batch_first") else drawn(length, batch, features)

    paddings = [None, padding(batch, cols), padding(batch, cols).float() * -3]
    masks = [None, torch.rand(rows, cols) > 0.7, torch.randn(rows, cols), torch.randn(batch * heads, rows, cols)]
    masks[1][:, 0] = False
    for key_padding_mask, attn_mask in itertools.product(paddings, masks):
        if key_padding_mask is not None and attn_mask is not None and key_padding_mask.dtype != attn_mask.dtype:
            continue
        compare(
            lambda nn: nn.MultiheadAttention(8, heads, **form), tensor(rows, 8), tensor(cols, form.get("kdim", 8)),
            tensor(cols, form.get("vdim", 8)), key_padding_mask=key_padding_mask, attn_mask=attn_mask,
            need_weights=need_weights, average_attn_weights=attn_mask is None,
        )  # fmt: skip


@pytest.mark.parametrize("batch_first", [True, False])
def test_attention_to_itself_projects_once(batch_first) -> None:
    x, memory = drawn(3, 4, 8), drawn(3, 4, 8)
    make = lambda nn: nn.MultiheadAttention(8, 2, batch_first=batch_first)
    compare(make, x, x, x)
    compare(make, x, memory, memory, need_weights=False)
    compare(make, x, x, memory)


@pytest.mark.parametrize("need_weights", [True, False])
def test_attention_that_drops_all_weights(need_weights) -> None:
    x = drawn(3, 4, 8)
    compare(lambda nn: nn.MultiheadAttention(8, 2, dropout=1.0), x, x, x, training=True, need_weights=need_weights)


def test_attention_with_dropout_is_on_average_attention() -> None:
    gradwire.manual_seed(0)
    q, k = gradwire.randn(1, 1, 4, 8), gradwire.randn(1, 1, 40, 8)
    v = gradwire.ones(1, 1, 40, 1, requires_grad=True)
    rows = gradwire.nn.functional.scaled_dot_product_attention(q.expand(500, 2, 4, 8), k.expand(500, 2, 40, 8),
                                                               v.expand(500, 2, 40, 1), dropout_p=0.3)  # fmt: skip
    assert abs(rows.mean().item() - 1) < 0.02
    rows.sum().backward()
    np.testing.assert_allclose(v.grad.sum().item(), rows.sum().item(), rtol=1e-4)


def test_an_encoder_layer_with_dropout_learns_the_same_from_the_same_seed() -> None:
    found = []
    for _ in range(2):
        gradwire.manual_seed(4)
        layer = gradwire.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.2)
        layer(gradwire.randn(5, 3, 8)).square().mean().backward()
        found.append([p.grad.numpy() for p in layer.parameters()])
    for a, b in zip(*found, strict=True):
        assert np.isfinite(a).all()
        np.testing.assert_array_equal(a, b)


def test_attention_without_a_batch() -> None:
    make = lambda nn: nn.MultiheadAttention(8, 2)
    query, key = drawn(4, 8), drawn(6, 8)
    mask = torch.zeros(6, dtype=torch.bool)
    mask[4:] = True
    compare(make, query, key, key)
    compare(make, query, key, key, key_padding_mask=mask, need_weights=False)
    compare(make, query, key, key, attn_mask=torch.randn(2, 4, 6), average_attn_weights=False)


def test_the_causal_hint() -> None:
    x = drawn(5, 2, 8)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(5)
    for need_weights in (True, False):
        for key_padding_mask in (None, padding(2, 5).float() * -2):
            compare(
                lambda nn: nn.MultiheadAttention(8, 2), x, x, x, attn_mask=mask, is_causal=True,
                need_weights=need_weights, key_padding_mask=key_padding_mask,
            )  # fmt: skip


def test_static_keys_and_values() -> None:
    torch.manual_seed(5)
    weight, out = drawn(24, 8), drawn(8, 8)
    x, key, value = drawn(4, 3, 8), drawn(6, 5, 4), drawn(6, 5, 4)
    args = (x, x, x, 8, 2, weight, None, None, None, True, 0.0, out, None)
    run_both(
        torch.nn.functional.multi_head_attention_forward, gradwire.nn.functional.multi_head_attention_forward, args,
        {"static_k": key, "static_v": value},
    )  # fmt: skip


@claims
def refused_attention(lib):
    nn, x = lib.nn, lib.ones(4, 3, 8)
    made = nn.MultiheadAttention(8, 2)
    attempts = {
        "heads": lambda: nn.MultiheadAttention(8, 3),
        "no heads": lambda: nn.MultiheadAttention(8, 0),
        "dimensions": lambda: made(x[0], x, x),
        "mask": lambda: made(x, x, x, attn_mask=lib.zeros(4, 5)),
        "mask of heads": lambda: made(x, x, x, attn_mask=lib.zeros(3, 4, 4)),
        "mask of integers": lambda: made(x, x, x, attn_mask=lib.zeros(4, 4, dtype=lib.int64)),
        "padding": lambda: made(x, x, x, key_padding_mask=lib.zeros(4, 3)),
        "padding of one sample": lambda: made(x, x, x, key_padding_mask=lib.zeros(4)),
        "features": lambda: made(x[..., :6], x, x),
        "keys and values": lambda: made(x, x, x[:2]),
        "a hint alone": lambda: made(x, x, x, is_causal=True),
        "activation": lambda: nn.TransformerEncoderLayer(8, 2, activation="tanh"),
        "batches": lambda: nn.Transformer(8, 2, 1, 1, 16, batch_first=True)(lib.ones(2, 3, 8), lib.ones(3, 3, 8)),
        "features of src": lambda: nn.Transformer(8, 2, 1, 1, 16, batch_first=True)(x[..., :6], x),
    }
    found = {}
    for name, attempt in attempts.items():
        try:
            attempt()
            found[name] = None
        except Exception as error:
            found[name] = built_in(error)
    return found


@claims
def a_mask_for_decoding(lib):
    made = lib.nn.Transformer.generate_square_subsequent_mask
    return made(4), made(3, dtype=lib.float64), made(1)


@claims
def dropped_weights(lib):
    lib.manual_seed(0)
    made = lib.nn.MultiheadAttention(8, 2, dropout=1.0, bias=False)
    x = lib.ones(4, 3, 8)
    out, weights = made(x, x, x)
    return out.tolist(), weights.tolist(), made.eval()(x, x, x)[1].sum(-1).tolist()


@claims
def what_layers_keep(lib):
    layer = lib.nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", norm_first=True)
    stack = lib.nn.TransformerEncoder(layer, 3)
    whole = lib.nn.Transformer(8, 2, 1, 2, 16, batch_first=True)
    return [
        layer.norm_first, layer.self_attn.head_dim, layer.self_attn.batch_first, stack.num_layers, stack.norm,
        len(stack.layers), stack.layers[0] is layer, whole.d_model, whole.nhead, whole.batch_first,
        [p.requires_grad for p in layer.parameters()],
    ]  # fmt: skip


@pytest.mark.parametrize("claim", claims, ids=name_of)
def test_attention_is_pytorchs(claim) -> None:
    if claim is what_layers_keep:
        # PyTorch also warns that its fast path does not apply.
        assert claim(gradwire) == claim(torch)
    else:
        same(claim)


# Transformers

VARIANTS = [
    {}, {"norm_first": True}, {"activation": "gelu"}, {"batch_first": True, "bias": False},
    {"norm_first": True, "batch_first": True, "layer_norm_eps": 1e-2},
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: ",".join(v) or "plain")
def test_encoders_and_decoders(variant) -> None:
    torch.manual_seed(2)
    batch_first = variant.get("batch_first")

    def sequence(length):
        return drawn(2, length, 8) if batch_first else drawn(length, 2, 8)

    src, tgt = sequence(5), sequence(4)
    causal = torch.nn.Transformer.generate_square_subsequent_mask
    compare(lambda nn: nn.TransformerEncoderLayer(8, 2, 16, 0.0, **variant), src, training=True)
    compare(lambda nn: nn.TransformerEncoderLayer(8, 2, 16, 0.0, **variant), src, src_mask=causal(5), is_causal=True)
    compare(lambda nn: nn.TransformerEncoderLayer(8, 2, 16, 0.0, **variant), src, src_key_padding_mask=padding(2, 5))

    def stack(nn):
        return nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.0, **variant), 2, nn.LayerNorm(8))

    compare(stack, src, mask=causal(5), src_key_padding_mask=padding(2, 5).float(), training=True)
    compare(stack, src, mask=causal(5), is_causal=True)

    def decoder(nn):
        return nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, 0.0, **variant), 2)

    compare(decoder, tgt, src, training=True)
    compare(
        decoder, tgt, src, tgt_mask=causal(4), tgt_is_causal=True, memory_key_padding_mask=padding(2, 5),
        memory_mask=torch.rand(4, 5) > 2, training=True,
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("norm_first", [True, False])
def test_a_whole_transformer(norm_first) -> None:
    torch.manual_seed(2)
    causal = torch.nn.Transformer.generate_square_subsequent_mask
    compare(
        lambda nn: nn.Transformer(8, 2, 2, 2, 16, 0.0, batch_first=True, norm_first=norm_first), drawn(3, 5, 8),
        drawn(3, 4, 8), src_mask=causal(5), tgt_mask=causal(4), tgt_is_causal=True, training=True,
        src_key_padding_mask=padding(3, 5).float() * -3, memory_key_padding_mask=padding(3, 5),
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_an_activation_may_be_a_function_or_a_module() -> None:
    x = drawn(4, 2, 8)
    compare(lambda nn: nn.TransformerEncoderLayer(8, 2, 16, 0.0, activation=nn.functional.silu), x)
    compare(lambda nn: nn.TransformerEncoderLayer(8, 2, 16, 0.0, activation=nn.PReLU()), x)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_weights_start_from_the_same_distributions() -> None:
    torch.manual_seed(0)
    gradwire.manual_seed(0)
    for make in (
        lambda nn: nn.Transformer(64, 2, 1, 1, 128),
        lambda nn: nn.MultiheadAttention(64, 2, add_bias_kv=True),
        lambda nn: nn.MultiheadAttention(64, 2, kdim=32, vdim=128),
        lambda nn: nn.TransformerDecoderLayer(64, 2, 128),
    ):
        for (name, t), (_, m) in zip(make(torch.nn).named_parameters(), make(gradwire.nn).named_parameters()):
            t, m = t.detach().numpy(), m.detach().numpy()
            np.testing.assert_allclose(m.std(), t.std(), rtol=0.3, err_msg=name)
            if name[:4] != "bias":  # which is normally distributed
                np.testing.assert_allclose(np.abs(m).max(), np.abs(t).max(), rtol=0.2, err_msg=name)


def test_layers_of_a_stack_learn_apart() -> None:
    stack = gradwire.nn.TransformerEncoder(gradwire.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)
    first, second = (layer.linear1.weight for layer in stack.layers)
    assert first is not second
    assert (first == second).all()
    with gradwire.no_grad():
        first.zero_()
    assert not (first == second).all()


def test_a_step_of_a_transformer_is_one_round_trip() -> None:
    model = gradwire.nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
    optimizer = gradwire.optim.SGD(model.parameters(), lr=0.1)
    session = gradwire.current_session()
    session.synchronize()
    before = session.stats()["round_trips"]
    for _ in range(3):
        optimizer.zero_grad()
        mask = gradwire.nn.Transformer.generate_square_subsequent_mask(4)
        loss = model(gradwire.ones(2, 5, 8), gradwire.ones(2, 4, 8), tgt_mask=mask).square().mean()
        loss.backward()
        optimizer.step()
        assert loss.item() > 0
    assert session.stats()["round_trips"] - before == 3
