"""``torch.library`` and ``torch.ops`` beside PyTorch's: operations of a program's own, with derivatives."""

from __future__ import annotations

import itertools
from importlib import import_module
from typing import Any

import pytest
from tests.side_by_side import Claims, name_of, raises, same

import gradwire

claim = Claims()
_numbers = itertools.count()


def fresh() -> str:
    """A namespace that no other test has."""
    return f"mine{next(_numbers)}"


def library(lib: Any) -> Any:
    return import_module(f"{lib.__name__}.library")


def cube(torch: Any, space: str) -> Any:
    """An operation ``space::cube(x, scale)`` with its derivative."""

    def kernel(x: Any, scale: float = 1.0) -> Any:
        return x**3 * scale

    kernel.__annotations__ = {"x": torch.Tensor, "scale": float, "return": torch.Tensor}
    op = library(torch).custom_op(f"{space}::cube", kernel, mutates_args=())

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, ctx.scale = inputs
        ctx.save_for_backward(x)

    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad * 3 * x**2 * ctx.scale, None

    op.register_autograd(backward, setup_context=setup_context)
    op.register_fake(lambda x, scale=1.0: torch.empty_like(x))
    return op


@claim
def an_operation_has_the_derivative_that_is_registered(torch: Any) -> Any:
    space = fresh()
    op = cube(torch, space)
    x = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
    y = op(x, 0.5)
    y.sum().backward()
    z = getattr(torch.ops, space).cube(x, scale=2.0)
    return y.detach(), x.grad, z.detach(), z.requires_grad, getattr(torch.ops, space).cube.default(x).detach()


@claim
def its_derivative_can_be_differentiated(torch: Any) -> Any:
    op = cube(torch, fresh())
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    (g,) = torch.autograd.grad(op(x).sum(), x, create_graph=True)
    return torch.autograd.grad(g.sum(), x)[0]


@claim
def an_operation_without_derivative_fails_in_backward(torch: Any) -> Any:
    def kernel(x: Any) -> Any:
        return x * 2

    kernel.__annotations__ = {"x": torch.Tensor, "return": torch.Tensor}
    op = library(torch).custom_op(f"{fresh()}::double", kernel, mutates_args=())
    y = op(torch.ones(2, requires_grad=True))
    return y.requires_grad, raises(lambda: y.sum().backward())


@claim
def a_fake_kernel_computes_on_the_meta_device(torch: Any) -> Any:
    found = cube(torch, fresh())(torch.ones(2, 3, device="meta"))
    return found.device.type, list(found.shape)


@claim
def a_library_defines_and_implements(torch: Any) -> Any:
    space = fresh()
    own = library(torch).Library(space, "DEF")
    own.define("scale(Tensor x, float factor=3.0, *, Tensor? bias=None) -> Tensor")
    own.impl("scale", lambda x, factor=3.0, bias=0.0: x * factor + bias, "CPU")
    own.define("negative(Tensor x, float unused=1.0) -> Tensor")
    own.impl("negative", lambda x: -x, "CPU")
    op = getattr(torch.ops, space).scale
    x = torch.ones(2)
    return (
        op(x), op(x, 2.0), getattr(torch.ops, space).negative(x, 1.0), op(x, factor=4.0, bias=x),
        raises(lambda: op()), raises(lambda: op(x, wrong=1)),
        raises(lambda: op(x, 1.0, x)),
    )  # fmt: skip


@claim
def a_composed_kernel_is_differentiated_through(torch: Any) -> Any:
    space = fresh()
    own = library(torch).Library(space, "DEF")
    own.define("sine(Tensor x) -> Tensor")
    own.impl("sine", lambda x: x.sin(), "CompositeImplicitAutograd")
    x = torch.tensor([0.5], requires_grad=True)
    getattr(torch.ops, space).sine(x).backward()
    return x.grad


@claim
def lists_of_tensors_have_lists_of_gradients(torch: Any) -> Any:
    def kernel(xs: Any) -> Any:
        return sum(x * (i + 1) for i, x in enumerate(xs))

    kernel.__annotations__ = {"xs": list[torch.Tensor], "return": torch.Tensor}
    op = library(torch).custom_op(f"{fresh()}::weighted", kernel, mutates_args=())
    op.register_autograd(lambda ctx, grad: [grad * (i + 1) for i in range(ctx.count)], setup_context=_count)
    xs = [torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)]
    op(xs).sum().backward()
    return [x.grad for x in xs]


def _count(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.count = len(inputs[0])


@claim
def vmap_uses_the_registered_rule(torch: Any) -> Any:
    op = cube(torch, fresh())
    called = []

    def rule(info: Any, in_dims: Any, x: Any, scale: float) -> Any:
        called.append(info.batch_size)
        return op(x.movedim(in_dims[0], 0), scale), 0

    op.register_vmap(rule)
    return torch.vmap(lambda x: op(x, 2.0))(torch.arange(6.0).reshape(3, 2)), called


@claim
def schemas_follow_from_annotations(torch: Any) -> Any:
    def function(x: Any, n: int, ys: Any, *, flag: bool = True, name: str = "a") -> Any: ...

    function.__annotations__ = {
        "x": torch.Tensor, "n": int, "ys": list[torch.Tensor], "flag": bool, "name": str,
        "return": tuple[torch.Tensor, torch.Tensor],
    }  # fmt: skip
    infer = library(torch).infer_schema
    return infer(function, mutates_args={"x"}), raises(lambda: infer(lambda x: x, mutates_args=()))


@claim
def what_is_not_there_is_said(torch: Any) -> Any:
    ops, lib = torch.ops, library(torch)
    return (
        hasattr(ops, "nowhere"), hasattr(ops.nowhere, "op"), raises(lambda: ops.nowhere.op), hasattr(ops.aten, "nope"),
        raises(lambda: lib.Library("x", "WRONG")), raises(lambda: ops.load_library("/nowhere.so")),
    )  # fmt: skip


@claim
def operations_of_aten_are_functions(torch: Any) -> Any:
    x = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
    aten = torch.ops.aten
    return (
        aten.add(x, x), aten.add.Tensor(x, x, alpha=2), aten.relu.default(x), aten.sum.dim_IntList(x, [1], True),
        aten.linalg_vector_norm(x), str(aten.mul.Tensor), aten.mm.default(x, x), aten.view.default(x, [4]),
    )  # fmt: skip


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize("one", claim, ids=name_of)
def test_as_in_pytorch(one: Any) -> None:
    same(one)


@pytest.mark.usefixtures("session")
def test_a_fake_kernel_may_come_before_its_operation() -> None:
    space = fresh()
    library(gradwire).register_fake(f"{space}::late", lambda x: gradwire.empty_like(x))
    assert not hasattr(getattr(gradwire.ops, space), "late")
    library(gradwire).define(f"{space}::late", "(Tensor x) -> Tensor")
    assert getattr(gradwire.ops, space).late(gradwire.ones(2, device="meta")).shape == (2,)
    with pytest.raises(NotImplementedError, match="no kernel for tensors on device cpu"):
        getattr(gradwire.ops, space).late(gradwire.ones(2))


@pytest.mark.usefixtures("session")
def test_a_library_takes_what_it_registered_with_it() -> None:
    space = fresh()
    with library(gradwire)._scoped_library(space, "DEF") as own:
        own.define("one(Tensor x) -> Tensor")
        own.impl("one", lambda x: x, "CPU")
        assert hasattr(getattr(gradwire.ops, space), "one")
    assert not hasattr(getattr(gradwire.ops, space), "one")


@pytest.mark.usefixtures("session")
def test_autocast_casts_what_is_registered() -> None:
    op = cube(gradwire, fresh())
    op.register_autocast("cpu", gradwire.bfloat16)
    x = gradwire.ones(2)
    assert op(x).dtype is gradwire.float32
    with gradwire.autocast("cpu", dtype=gradwire.bfloat16):
        assert op(x).dtype is gradwire.bfloat16


def test_a_library_that_cannot_be_loaded_is_an_error_of_the_system() -> None:
    with pytest.raises(OSError, match="compiled for PyTorch"):
        gradwire.ops.load_library("/nowhere.so")
