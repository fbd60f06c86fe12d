"""Every floating and complex dtype through forward, backward and second order; complex views and their names."""

from __future__ import annotations

import pytest
from tests.side_by_side import Claims, history, name_of, same

pytestmark = pytest.mark.usefixtures("session")
claim = Claims()

REAL = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")


def leaf(torch, dtype, shape=(2, 3)):
    """A leaf whose values every dtype holds exactly."""
    dtype = getattr(torch, dtype)
    count = 1
    for n in shape:
        count *= n
    values = [((7 * i + 3) % 11 - 5) / 4 + 0.125 for i in range(count)]
    if dtype.is_complex:
        values = [v + 1j * ((3 * i) % 7 - 3) / 4 for i, v in enumerate(values)]
    return torch.tensor(values, dtype=dtype).reshape(shape).detach().requires_grad_()


FUNCTIONS = {
    "a product": lambda t, x: x * x,
    "a quotient": lambda t, x: x / (x * x + 2),
    "a power": lambda t, x: x**3,
    "a matrix product": lambda t, x: x @ x.t(),
    "a sum along a dimension": lambda t, x: x.sum(0) * x.mean(1, keepdim=True),
    "exp": lambda t, x: x.exp(),
    "sin and cos": lambda t, x: x.sin() * x.cos(),
    "tanh": lambda t, x: x.tanh(),
    "sqrt": lambda t, x: (x * x + 4).sqrt(),
    "log": lambda t, x: (x * x + 5).log(),
    "sigmoid": lambda t, x: x.sigmoid(),
    "reciprocal": lambda t, x: (x * x + 3).reciprocal(),
    "prod": lambda t, x: x.prod(1),
    "cumsum": lambda t, x: x.cumsum(1) * x,
    "views": lambda t, x: x.t().reshape(-1)[1:5].view(2, 2) * 2,
    "cat and stack": lambda t, x: t.cat([x, x * x]).sum() * t.stack([x, -x]),
    "where": lambda t, x: t.where(t.tensor([True, False, True]), x * x, x),
    "indexing": lambda t, x: x[[0, 1, 0]] * x[1],
    "a write": lambda t, x: written(x * 2, x),
    "abs": lambda t, x: (x * x + 2).abs(),
    "linear combination": lambda t, x: t.addcmul(x, x, x, value=2) - t.lerp(x, x * x, 0.25),
}


def written(y, x):
    y[0] = x[1] * 3
    y[:, 1].mul_(x[:, 0])
    return y


def through(function, dtype):
    """Forward, gradients, and gradients of gradients."""

    def attempt(torch):
        x = leaf(torch, dtype)
        y = function(torch, x)
        real = torch.view_as_real(y) if y.is_complex() else y
        weights = (torch.arange(float(real.numel())) % 3 - 1).reshape(real.shape).to(real.dtype)
        (first,) = torch.autograd.grad((real * weights).sum(), x, create_graph=True)
        squared = torch.view_as_real(first).pow(2) if first.is_complex() else first.pow(2)
        (second,) = torch.autograd.grad(squared.sum(), x)
        return y, first.detach().contiguous(), second.contiguous()

    return attempt


def coarse(function, dtype):
    """Forward and gradients, for dtypes in which torch rounds along the way."""

    def attempt(torch):
        x = leaf(torch, dtype)
        y = function(torch, x)
        y.float().sum().backward()
        return y, x.grad

    return attempt


@pytest.mark.parametrize("dtype", ["float32", "float64", *COMPLEX])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_two_orders_in_every_dtype(name, dtype):
    same(through(FUNCTIONS[name], dtype))


EXACT_IN_HALF = ("a product", "views", "cat and stack", "where", "indexing", "a sum along a dimension", "tanh", "exp",
                 "sigmoid", "a matrix product")  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", EXACT_IN_HALF)
def test_forward_and_backward_in_half_precision(name, dtype):
    same(coarse(FUNCTIONS[name], dtype))


@pytest.mark.parametrize("dtype", REAL + COMPLEX)
def test_a_gradient_has_the_dtype_of_its_leaf(dtype):
    def attempt(torch):
        x = leaf(torch, dtype)
        wide = x.to(torch.complex128) if x.is_complex() else x.double()
        (wide * 2).abs().sum().backward()
        return x.grad.dtype, history(wide)

    same(attempt)


# Complex gradients: the conjugate Wirtinger convention

WIRTINGER = {
    "abs": lambda t, z: z.abs(),
    "squared size": lambda t, z: (z * z.conj()).real,
    "real part": lambda t, z: z.real * 3,
    "imaginary part": lambda t, z: z.imag**2,
    "angle": lambda t, z: z.angle(),
    "conj": lambda t, z: (z.conj() * (1 + 2j)).real,
    "conj_physical": lambda t, z: (z.conj_physical() * (1 + 2j)).imag,
    "exp": lambda t, z: z.exp().real,
    "log": lambda t, z: z.log().imag,
    "sqrt": lambda t, z: z.sqrt().real,
    "reciprocal": lambda t, z: (1 / z).real,
    "a power": lambda t, z: (z**2.5).real,
    "a complex power": lambda t, z: (z ** (1 + 0.5j)).imag,
    "sgn": lambda t, z: z.sgn().real,
    "view_as_real": lambda t, z: t.view_as_real(z)[..., 1] * 2,
    "a product with a real tensor": lambda t, z: (z * t.tensor([1.0, 2.0, 3.0])).imag,
    "a product with a complex number": lambda t, z: (z * 2j).real,
    "a matrix product": lambda t, z: (z @ z.mH).real,
    "adjoint": lambda t, z: (z.adjoint() * 2j).real,
    "H": lambda t, z: (z.H * 1j).imag,
    "sin": lambda t, z: z.sin().real,
    "tanh": lambda t, z: z.tanh().imag,
    "a sum": lambda t, z: (z.sum() * z.sum().conj()).real,
    "mean": lambda t, z: z.mean(0).abs(),
    "prod": lambda t, z: z.prod().real,
    "norm": lambda t, z: z.norm(),
    "cumprod": lambda t, z: z.cumprod(1).imag,
    "where": lambda t, z: t.where(t.tensor([True, False, True]), z, 1j * z).real,
    "div": lambda t, z: (z / (z.conj() + 3)).real,
}


@pytest.mark.parametrize("name", WIRTINGER)
def test_complex_gradients(name):
    def attempt(torch):
        z = leaf(torch, "complex128")
        y = WIRTINGER[name](torch, z)
        (first,) = torch.autograd.grad(y.sum(), z, create_graph=True)
        (second,) = torch.autograd.grad(first.abs().pow(2).sum(), z) if first.requires_grad else (None,)
        second = second if second is None else second.contiguous()  # its strides are not the claim
        return y.detach(), y.grad_fn.name(), first.detach().contiguous(), second

    same(attempt)


@claim
def a_real_operand_of_a_complex_product_receives_the_real_part(torch):
    x, z = leaf(torch, "float32"), leaf(torch, "complex64")
    (x * z * (1 - 2j)).sum().real.backward()
    return x.grad, z.grad


@claim
def a_complex_gradient_given_to_backward(torch):
    z = leaf(torch, "complex64", (3,))
    (z * z).backward(torch.tensor([1 + 1j, 2j, -1]))
    return z.grad


@claim
def kinks_are_zero_at_zero(torch):
    z = torch.zeros(3, dtype=torch.complex64, requires_grad=True)
    made = z.abs() + z.angle()
    made.sum().backward()
    first = z.grad.clone()
    z.grad = None
    z.sgn().real.sum().backward()
    return first, z.grad


@claim
def polar(torch):
    size, angle = leaf(torch, "float64", (3,)), leaf(torch, "float64", (3,))
    z = torch.polar(size, angle)
    torch.view_as_real(z * z).sum().backward()
    return z, size.grad, angle.grad, history(z)


@claim
def complex_from_parts(torch):
    real, imag = leaf(torch, "float32", (3,)), leaf(torch, "float32", (1,))
    z = torch.complex(real, imag)
    (z * z.conj() + z).abs().sum().backward()
    return z, real.grad, imag.grad


# Names and identity


@claim
def names_of_complex_views(torch):
    z = leaf(torch, "complex64", (2, 2))
    made = {
        "real": z.real, "imag": z.imag, "torch.real": torch.real(z), "torch.imag": torch.imag(z),
        "view_as_real": torch.view_as_real(z), "there and back": torch.view_as_complex(torch.view_as_real(z)),
        "mT": z.mT, "T": z.T, "angle": z.angle(), "abs": z.abs(), "sgn": z.sgn(), "neg": -z,
        "conj_physical": z.conj_physical(), "to": z.to(torch.complex128),
    }  # fmt: skip
    return {name: (v, history(v), v._is_view()) for name, v in made.items()}


@claim
def names_of_conjugates(torch):
    z = leaf(torch, "complex64", (2, 2))
    made = {"conj": z.conj(), "mH": z.mH, "H": z.H, "adjoint": z.adjoint(), "torch.conj": torch.conj(z)}
    return {name: (history(v), v.resolve_conj().tolist()) for name, v in made.items()}


@claim
def what_is_real_is_returned_itself(torch):
    x = leaf(torch, "float32", (2, 2))
    return [
        made is x
        for made in (
            x.real, torch.real(x), x.conj(), x.conj_physical(), x.resolve_conj(), x.resolve_neg(), torch.conj(x),
            torch.resolve_conj(x), torch.resolve_neg(x),
        )
    ], x.mH, x.H, x.adjoint(), x.is_conj(), x.is_neg(), torch.is_conj(x), torch.is_neg(x)  # fmt: skip


@claim
def what_is_resolved_is_returned_itself(torch):
    z = leaf(torch, "complex64", (2, 2))
    return z.resolve_conj() is z, z.resolve_neg() is z, z.is_conj(), z.is_neg()


MISTAKES = {
    "imag of a real tensor": lambda t: t.ones(2).imag,
    "view_as_real of a real tensor": lambda t: t.view_as_real(t.ones(2)),
    "view_as_complex of three columns": lambda t: t.view_as_complex(t.ones(2, 3)),
    "view_as_complex of a vector of three": lambda t: t.view_as_complex(t.ones(3)),
    "view_as_complex across memory": lambda t: t.view_as_complex(t.ones(2, 3).t()),
    "view_as_complex of integers": lambda t: t.view_as_complex(t.ones(2, 2, dtype=t.int32)),
    "parts of two dtypes": lambda t: t.complex(t.ones(2), t.ones(2, dtype=t.float64)),
    "parts that are integers": lambda t: t.complex(t.ones(2, dtype=t.int32), t.ones(2, dtype=t.int32)),
    "parts that are numbers": lambda t: t.complex(t.ones(2), 1.0),
    "adjoint of a vector": lambda t: t.ones(3).adjoint(),
    "comparing complex numbers": lambda t: t.ones(2, dtype=t.complex64) < 1,
    "max of complex numbers": lambda t: t.ones(2, dtype=t.complex64).max(),
    "relu of complex numbers": lambda t: t.ones(2, dtype=t.complex64).relu(),
    "float() of a complex number": lambda t: t.ones(2, dtype=t.complex64).floor(),
    "requires_grad of integers": lambda t: t.ones(2, dtype=t.int64).requires_grad_(),
    "requires_grad of bools": lambda t: t.ones(2, dtype=t.bool).requires_grad_(),
    "sqrt_ of integers": lambda t: t.ones(2, dtype=t.int64).sqrt_(),
    "a complex loss": lambda t: leaf(t, "complex64").sum().backward(),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_mistakes(what):
    same(MISTAKES[what])


# Casts


@claim
def gradients_pass_casts(torch):
    x = leaf(torch, "float32", (3,))
    y = x.half().double().bfloat16().float()
    (y * torch.tensor([1.0, 2.0, 4.0])).sum().backward()
    return x.grad, history(y)


@claim
def a_cast_to_integers_ends_history(torch):
    x = leaf(torch, "float32", (3,))
    return x.long(), x.bool(), x.to(torch.int8)


@claim
def a_cast_from_complex_to_real_takes_the_real_part(torch):
    z = leaf(torch, "complex64", (3,))
    y = z.real.to(torch.float64)
    y.sum().backward()
    return y, z.grad


@claim
def operands_of_several_dtypes_receive_their_own(torch):
    tensors = [leaf(torch, d, (3,)) for d in ("float16", "float32", "float64", "complex64")]
    product = tensors[0] * tensors[1] * tensors[2] * tensors[3]
    product.real.sum().backward()
    return product.dtype, [t.grad.dtype for t in tensors], tensors[2].grad, tensors[3].grad


@pytest.mark.parametrize("claim", claim, ids=name_of)
def test_claim(claim):
    same(claim)
