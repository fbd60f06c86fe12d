"""Subclasses of Tensor keep their class through operations, or do what their ``__torch_function__`` decides."""

from __future__ import annotations

import threading

import pytest
import torch
from tests.side_by_side import Claims, name_of, same

import gradwire
from gradwire._core.context.modes import MODES

pytestmark = pytest.mark.usefixtures("session")
claim = Claims()


@pytest.fixture(autouse=True)
def _classes_are_forgotten():
    """The tests of other files are to take the fast path again."""
    yield
    type(MODES).classes = False
    MODES.flags = MODES.flags


def tagged(lib):
    class Tagged(lib.Tensor):
        pass

    return Tagged


def kinds(values):
    return [type(value).__name__ for value in values]


@claim
def a_subclass_may_have_slots(lib):
    class Slotted(lib.Tensor):
        __slots__ = ("tag",)

    x = lib.ones(2, requires_grad=True)
    seen = (x * 2).as_subclass(Slotted)
    seen.tag = "mine"
    seen.sum().backward()
    leaf = lib.Tensor._make_subclass(Slotted, lib.ones(2), True)
    (leaf * 3).sum().backward()
    made = Slotted(2)
    made.zero_()
    return (
        kinds([seen, seen + 1, leaf, made]), seen.tag, seen.detach(), seen.grad_fn.name(), x.grad, leaf.grad,
        leaf.is_leaf, made.shape, hasattr(made, "tag"),
    )  # fmt: skip


@claim
def without_arguments_a_tensor_is_empty(lib):
    class Titled(lib.Tensor):
        def __new__(cls, title):
            return super().__new__(cls)

        def __init__(self, title):
            self.title = title

    made = Titled("a")
    return lib.Tensor(), lib.Tensor(size=(2,)).shape, kinds([made]), made.title, made.shape


@claim
def every_kind_of_call_keeps_the_class(lib):
    cls = tagged(lib)
    x = lib.arange(6.0).reshape(2, 3).as_subclass(cls)
    functional = lib.nn.functional
    found = [
        x + 1, 1 + x, x * x, 2 / x.abs(), -x, x @ x.t(), x > 1, lib.sin(x), lib.add(lib.ones(3), x), x.sum(), x[0],
        x[:, 1:],
        x.T, x.reshape(6), x.clone(), x.detach(), x.to(lib.float64), x.long(),
        lib.cat([x, lib.ones(1, 3)]),
        lib.zeros_like(x), lib.rand_like(x), x.new_zeros(2), functional.relu(x), functional.softmax(x, 0),
        functional.linear(x, lib.ones(2, 3)), lib.where(x > 1, x, 0.0), lib.stack([x, x]), x.unsqueeze(0), x.max(),
        lib.einsum("ij->ji", x), functional.layer_norm(x, (3,)), lib.linalg.norm(x), x.contiguous(), x.flatten(),
    ]  # fmt: skip
    return kinds(found), [f.detach().tolist() for f in found if "rand" not in str(f)][:8]


@claim
def several_results_are_each_of_the_class(lib):
    x = lib.arange(6.0).reshape(2, 3).as_subclass(tagged(lib))
    found = [x.chunk(3, 1), x.unbind(), x.max(0), x.sort(), lib.split(x, 1), lib.var_mean(x), x.topk(1)]
    return [kinds(values) for values in found], [type(values).__name__ for values in found]


@claim
def what_is_written_in_place_keeps_its_own_class(lib):
    cls = tagged(lib)
    x, y = lib.ones(3).as_subclass(cls), lib.ones(3)
    x.add_(1)
    x += y
    x[0] = 7
    out = lib.zeros(3)
    lib.add(y, y, out=out)
    return kinds([x, y, out, x.mul_(2)]), x.tolist(), out


@claim
def gradients_flow_through_a_subclass(lib):
    w = lib.ones(3, requires_grad=True)
    x = w.as_subclass(tagged(lib))
    y = (x * lib.arange(3.0)).sum()
    y.backward()
    return w.grad, type(y).__name__, y.requires_grad, w.is_leaf


@claim
def an_instance_is_made_of_data_or_of_a_tensor(lib):
    cls = tagged(lib)
    leaf = lib.Tensor._make_subclass(cls, lib.ones(2), True)
    (leaf * 2).sum().backward()
    return (
        kinds([cls([1.0, 2.0]), cls(lib.ones(2)), leaf, leaf * 2]),
        cls([1.0, 2.0]).tolist(),
        leaf.grad.tolist(),
        leaf.is_leaf,
    )


@claim
def attributes_of_a_subclass_are_its_own(lib):
    class Named(lib.Tensor):
        def __new__(cls, data, name):
            made = lib.Tensor._make_subclass(cls, lib.tensor(data))
            made.name_of_it = name
            return made

        def twice(self):
            return self * 2

    x = Named([1.0, 2.0], "first")
    y = x.twice()
    return x.name_of_it, kinds([y]), y.tolist(), hasattr(y, "name_of_it"), isinstance(y, lib.Tensor)


@claim
def a_class_decides_what_its_functions_do(lib):
    class Logged(lib.Tensor):
        seen = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.seen.append(func.__name__)
            if func.__name__ == "cos":
                return "refused"
            return super().__torch_function__(func, types, args, kwargs or {})

    x = lib.ones(3).as_subclass(Logged)
    Logged.seen.clear()
    found = lib.sin(x), lib.cos(x), lib.exp(x).mean()
    return Logged.seen, kinds(found), found[1]


@claim
def the_subclass_of_two_is_asked_first(lib):
    first = tagged(lib)

    class Inner(first):
        pass

    x, y = lib.ones(2).as_subclass(first), lib.ones(2).as_subclass(Inner)
    return kinds([x + y, y + x, lib.stack([x, y])])


@claim
def classes_that_know_nothing_of_each_other_do_not_mix(lib):
    return lib.ones(2).as_subclass(tagged(lib)) + lib.ones(2).as_subclass(tagged(lib))


@claim
def parameters_give_plain_tensors(lib):
    class Weight(lib.nn.Parameter):
        pass

    x = lib.ones(2).as_subclass(tagged(lib))
    weight = Weight(lib.ones(2))
    return kinds([weight, weight * 2, weight * x, lib.nn.Parameter(lib.ones(1)) + 1])


@claim
def a_module_takes_tensors_of_a_class(lib):
    layer = lib.nn.Linear(3, 2)
    y = layer(lib.ones(1, 3).as_subclass(tagged(lib)))
    y.sum().backward()
    return kinds([y, layer.weight.grad]), layer.weight.grad.tolist()


@claim
def other_objects_take_functions_over(lib):
    class Scalar:
        def __init__(self, value):
            self.value = value

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return (func.__name__, [t.__name__ for t in types], func is lib.mean)

    return lib.mean(Scalar(3)), lib.add(lib.ones(2), Scalar(2))


@claim
def functions_of_the_program_are_left_to_classes(lib):
    class Scalar:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "taken" if func is mine else NotImplemented

    def mine(value):
        if lib.overrides.has_torch_function((value,)):
            return lib.overrides.handle_torch_function(mine, (value,), value)
        return "plain"

    liked = [lib.overrides.is_tensor_like(v) for v in (Scalar(), lib.ones(1), 3, lib.ones(1).as_subclass(tagged(lib)))]
    return mine(Scalar()), mine(lib.ones(2)), mine(3), liked


@claim
def a_mode_sees_functions_within_it(lib):
    class Counting(lib.overrides.TorchFunctionMode):
        def __init__(self):
            super().__init__()
            self.seen = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    with Counting() as outer:
        lib.sin(lib.ones(2))
        with Counting() as inner:
            made = lib.exp(lib.ones(2))
    lib.cos(made)
    return [n for n in outer.seen if n in ("sin", "exp", "cos")], [n for n in inner.seen if n in ("exp", "cos")], made


@pytest.mark.parametrize("claim", claim, ids=name_of)
def test_the_same_as_torch(claim):
    same(claim)


def test_classes_are_left_out_where_the_program_says_so():
    for lib in (torch, gradwire):
        off = torch._C.DisableTorchFunctionSubclass if lib is torch else gradwire.overrides.DisableTorchFunctionSubclass
        x = lib.ones(2).as_subclass(tagged(lib))
        with off():
            assert type(x + 1) is lib.Tensor
        assert type(x + 1) is type(x)


def test_programs_without_such_classes_take_the_fast_path():
    gradwire.nn.Parameter(gradwire.ones(2)) * gradwire.ones(2)
    assert MODES.key >= 0 and not MODES.classes


def test_a_thread_that_starts_later_keeps_classes_too():
    x = gradwire.ones(2).as_subclass(tagged(gradwire))
    found = []
    thread = threading.Thread(target=lambda: found.append(type(x + 1)))
    thread.start()
    thread.join(30)
    assert found == [type(x)]
