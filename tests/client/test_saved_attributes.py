"""``grad_fn._saved_*`` and ``_raw_saved_*``: the saved values of nodes, under torch and gradwire."""

from __future__ import annotations

import pytest
from tests.saved_attributes import differences
from tests.side_by_side import Claims, name_of, same
from torch.testing._internal.common_methods_invocations import op_db

from gradwire._core.backward import saved_attributes

pytestmark = pytest.mark.usefixtures("session")
claim = Claims()

COMPARED = (
    "exp", "sin", "mul", "pow", "sum", "softmax", "matmul", "sort", "addmm", "sigmoid", "tanh", "sqrt", "reciprocal",
    "nn.functional.gelu", "where", "cumprod", "atan2", "log", "addcmul", "logsumexp", "mm", "erfinv", "fft.fft2",
    "fft.hfft", "index_add", "nn.functional.max_pool2d", "nn.functional.avg_pool2d", "nn.functional.avg_pool3d",
    "nn.functional.unfold", "nn.functional.grid_sample", "nn.functional.embedding_bag", "unsafe_split",
    "native_group_norm", "nn.functional.upsample_nearest",
)  # fmt: skip


@pytest.mark.parametrize("name", COMPARED)
def test_what_a_node_tells_is_what_pytorch_s_tells(name: str) -> None:
    entries = [e for e in op_db if e.name == name and not e.variant_test_name]
    found = [line for entry in entries for line in differences(entry, 4)]
    assert not found, "\n".join(found)


def test_the_table_names_what_most_nodes_keep() -> None:
    table = saved_attributes.sources()
    assert len(table) > 200
    assert sum(map(len, table.values())) > 500


def leaf(torch, *values):
    return torch.tensor(values or (1.0, -2.0, 3.0), requires_grad=True)


@claim
def a_saved_leaf_is_the_leaf(torch):
    x = leaf(torch)
    node = (x * x).grad_fn
    return node._saved_self is x, node._saved_other is x


@claim
def a_saved_operand_has_its_history(torch):
    y = leaf(torch).sin()
    saved = (y * y).grad_fn._saved_self
    return saved, saved.grad_fn == y.grad_fn


@claim
def a_saved_result_is_another_tensor_with_the_same_history(torch):
    y = leaf(torch).exp()
    saved = y.grad_fn._saved_result
    return saved is y, saved, saved.grad_fn == y.grad_fn


@claim
def what_no_gradient_needs_is_not_kept(torch):
    x = leaf(torch)
    node = (x * torch.ones(3)).grad_fn
    return node._saved_self, node._saved_other


@claim
def arguments_are_told_after_the_graph_is_freed(torch):
    y = leaf(torch, 4.0, 9.0).softmax(0)
    y.sum().backward()
    return y.grad_fn._saved_dim


@claim
def what_was_freed_is_refused(torch):
    y = leaf(torch).exp()
    y.sum().backward()
    return y.grad_fn._saved_result


@claim
def what_was_changed_in_place_is_refused(torch):
    x = leaf(torch) * 1
    y = x * x
    x.add_(1)
    return y.grad_fn._saved_self


@claim
def names_that_no_node_has_are_missing(torch):
    node = leaf(torch).exp().grad_fn
    return [hasattr(node, n) for n in ("_saved_result", "_saved_other", "_raw_saved_result", "foo")]


@claim
def names_are_listed(torch):
    return [[n for n in dir(t.grad_fn) if n.startswith("_saved_")] for t in (leaf(torch).exp(), leaf(torch) ** 3)]


@claim
def a_node_that_outlives_its_tensor_takes_hooks_and_tells_what_it_keeps(torch):
    found = []

    def node_of(x):
        y = x * x
        return y.grad_fn, y.sum()

    x = leaf(torch)
    node, loss = node_of(x)
    node.register_hook(lambda *_: found.append("ran"))
    loss.backward()
    return found, x.grad, (x.exp()).grad_fn._saved_result.tolist()


@claim
def hooks_on_one_saved_tensor(torch):
    x = leaf(torch)
    y = x * x
    y.grad_fn._raw_saved_self.register_hooks(lambda t: t * 2, lambda t: t * 5)
    saved = y.grad_fn._saved_self.tolist()
    y.sum().backward()
    return saved, x.grad


@claim
def hooks_on_one_saved_result(torch):
    x = leaf(torch)
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t.detach().clone(), lambda t: t * 3)
    y.sum().backward()
    return x.grad


@claim
def hooks_on_both_saved_tensors(torch):
    x, w = leaf(torch), leaf(torch)
    y = x * w
    y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t * 5)
    y.grad_fn._raw_saved_other.register_hooks(lambda t: t, lambda t: t * 7)
    y.sum().backward()
    return x.grad, w.grad


@claim
def hooks_on_one_saved_tensor_are_registered_once(torch):
    y = leaf(torch).exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t, lambda t: t)
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t, lambda t: t)


@claim
def hooks_on_what_was_freed_are_refused(torch):
    y = leaf(torch).exp()
    raw = y.grad_fn._raw_saved_result
    y.sum().backward()
    raw.register_hooks(lambda t: t, lambda t: t)


@claim
def a_hook_on_one_saved_tensor_may_not_change_it(torch):
    x = leaf(torch) * 1
    y = x * x
    y.grad_fn._raw_saved_self.register_hooks(lambda t: t.mul_(2), lambda t: t)


def product(torch, *extra, gives_result=False):
    """A Function that computes ``x * w`` and saves both, what else is given, and maybe its result."""

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            result = x * w
            ctx.save_for_backward(x, w, *extra, *([result] if gives_result else []))
            return result

        @staticmethod
        def backward(ctx, g):
            x, w, *others = ctx.saved_tensors
            factor = others[-1] if gives_result else 1
            return g * w * factor, g * x

    return Product


@claim
def hooks_on_what_a_function_saved(torch):
    found = []
    for gives_result in (False, True):
        x, w = leaf(torch), leaf(torch)
        y = product(torch, gives_result=gives_result).apply(x, w)
        raw = y.grad_fn._raw_saved_tensors
        raw[0].register_hooks(lambda t: t.detach().clone(), lambda t: t * 5)
        raw[-1].register_hooks(lambda t: t * 7, lambda t: t)
        found.append([t.tolist() for t in y.grad_fn.saved_tensors])
        y.sum().backward()
        found.append((len(raw), x.grad, w.grad))
    return found


@claim
def raw_tensors_of_functions_and_ops_are_of_one_class(torch):
    kind = torch.autograd.SavedTensor
    y = product(torch, None).apply(leaf(torch), leaf(torch))
    z = y.exp()
    return [isinstance(t, kind) for t in (*y.grad_fn._raw_saved_tensors, z.grad_fn._raw_saved_result)]


@claim
def a_function_that_saved_nothing_has_no_raw_tensors(torch):
    class Same(torch.autograd.Function):
        forward = staticmethod(lambda ctx, x: x.clone())
        backward = staticmethod(lambda ctx, g: g)

    return Same.apply(leaf(torch)).grad_fn._raw_saved_tensors


@claim
def a_saved_none_takes_no_hooks(torch):
    y = product(torch, None).apply(leaf(torch), leaf(torch))
    y.grad_fn._raw_saved_tensors[2].register_hooks(lambda t: t, lambda t: t)


@claim
def hooks_on_what_a_function_saved_are_registered_once(torch):
    y = product(torch).apply(leaf(torch), leaf(torch))  # kept: torch's raw tensors do not outlive their node
    y.grad_fn._raw_saved_tensors[0].register_hooks(lambda t: t, lambda t: t)
    y.grad_fn._raw_saved_tensors[0].register_hooks(lambda t: t, lambda t: t)


@claim
def hooks_that_are_no_functions(torch):
    found = []
    y = product(torch).apply(leaf(torch), leaf(torch))
    z = y.exp()
    for raw in (z.grad_fn._raw_saved_result, y.grad_fn._raw_saved_tensors[0]):
        for hooks in ((1, 1), (len,), (None, len)):
            try:
                raw.register_hooks(*hooks)
            except TypeError:
                found.append(hooks)
    return len(found)


@claim
def raw_tensors_of_a_function_that_was_freed(torch):
    y = product(torch).apply(leaf(torch), leaf(torch))
    y.sum().backward()
    return y.grad_fn._raw_saved_tensors


@claim
def a_saved_tensor_is_not_made_by_hand(torch):
    torch.autograd.SavedTensor()


@pytest.mark.parametrize("claim", list(claim), ids=name_of)
def test_claim(claim) -> None:
    same(claim)
