"""``torch.fx`` records what PyTorch's records, and the code of its modules computes what the untraced ones do."""

from __future__ import annotations

import copy
import math
import operator
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from types import FunctionType
from typing import Any

import pytest
import torch
from tools import function_forms
from torch import fx as _torch_fx  # noqa: F401  (so that torch.fx is there)

import gradwire
from gradwire import fx
from gradwire.fx import _names
from gradwire.fx._dispatch import KEPT, recorded

LIBRARIES = (torch, gradwire)


def function_of(lib: Any, source: Callable[..., Any]) -> Any:
    """A function of this file with ``torch`` and ``F`` as those of a library."""
    names = {**source.__globals__, "torch": lib, "F": lib.nn.functional, "nn": lib.nn}
    made = FunctionType(source.__code__, names, source.__name__, source.__defaults__, source.__closure__)
    made.__kwdefaults__ = source.__kwdefaults__
    return made


def plain(text: str) -> str:
    """Code without the private paths at which PyTorch keeps functions that gradwire has at public ones."""
    text = text.replace("torch._C._nn.", "torch.nn.functional.").replace("torch.functional.", "torch.")
    return re.sub(r"torch\._C\._(linalg|fft)\.\1_", r"torch.\1.", text)


def recorded_graph(lib: Any, root: Any, concrete_args: Any = None) -> Any:
    made = lib.fx.symbolic_trace(root, concrete_args)
    nodes = [
        (node.op, node.name, plain(node._pretty_print_target(node.target)), str(node.args), str(node.kwargs))
        for node in made.graph.nodes
    ]
    return nodes, plain(made.code), plain(str(made.graph))


F: Any = torch.nn.functional
nn: Any = torch.nn


def operators(x, y=None, *, k=2):  # type: ignore[no-untyped-def]
    z = x * 2 + 1 - x / 3**x
    z += -abs(z)
    z = ~(z > 0) & (x @ x).T
    return {"a": z[:, None, ..., 1:], "b": (x.shape[0], [k, z[x.size(0) :]]), "c": y}


def functions(x):  # type: ignore[no-untyped-def]
    a, b = x.chunk(2, dim=1)
    q = torch.cat([a, b], dim=-1).view(x.size(0), -1)
    q = F.relu(F.softmax(q, dim=-1)) + torch.relu(F.gelu(q))
    q = F.layer_norm(q, (3,)) + F.dropout(q, 0.1) + F.max_pool2d(q, 2) + F.pad(q, (1, 1))
    q = F.interpolate(q, scale_factor=2.0) + F.cross_entropy(q, x) + torch.where(q > 0, x, q)
    q = q + torch.einsum("ij,jk->ik", q, q) + torch.linalg.norm(q) + torch.fft.fft(q) + torch.split(q, 2)[0]
    return q, torch.max(q, 1)[0], torch.sum(q, dim=1, keepdim=True), torch.addmm(q, q, q, beta=2)


def creation(x):  # type: ignore[no-untyped-def]
    made = [torch.zeros(x.size(0)), torch.arange(x.shape[0], device=x.device), torch.full((x.size(0), 2), 1.0)]
    return made, torch.ones_like(x), torch.randn(x.shape), torch.ones(2, 3), math.sqrt(x.size(0))


def variadic(x, *args, **kw):  # type: ignore[no-untyped-def]
    return x + args[0] + kw["a"]


def annotated(x, y: int = 3, z: float = 2.5) -> list[int]:
    return x.add(y, alpha=z)  # type: ignore[attr-defined, no-any-return]


def nested(d):  # type: ignore[no-untyped-def]
    return d["x"] + d["y"][0]


def decided(x, b):  # type: ignore[no-untyped-def]
    return x + 1 if b is None else x


@pytest.mark.parametrize("source", [operators, functions, creation, variadic, annotated], ids=lambda f: f.__name__)
def test_functions_are_recorded_as_pytorch_records_them(source: Any) -> None:
    expected, found = (recorded_graph(lib, function_of(lib, source)) for lib in LIBRARIES)
    assert found == expected


def test_arguments_with_values_are_recorded_as_pytorch_records_them() -> None:
    def graphs(lib: Any) -> Any:
        place = lib.fx.PH
        yield recorded_graph(lib, function_of(lib, nested), {"d": {"x": place, "y": [place]}})
        yield recorded_graph(lib, function_of(lib, decided), {"b": None})

    expected, found = (list(graphs(lib)) for lib in LIBRARIES)
    assert found == expected
    made = fx.symbolic_trace(nested, {"d": {"x": fx.PH, "y": [fx.PH]}})
    assert made({"x": 1, "y": [4]}) == 5
    with pytest.raises(AssertionError, match="specialized"):
        fx.symbolic_trace(decided, {"b": None})(1, 2)


def block(lib: Any) -> Any:
    """A class of modules: layers, parameters, buffers, constants, and functions kept as attributes."""

    class Block(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = lib.nn.Conv2d(3, 4, 3, padding=1), lib.nn.BatchNorm2d(4)
            self.tail = lib.nn.Sequential(lib.nn.Linear(4, 5), lib.nn.Tanh())
            self.layers = lib.nn.ModuleDict({"0": lib.nn.Linear(5, 5)})
            self.scale = lib.nn.Parameter(lib.ones(4))
            self.register_buffer("shift", lib.full((4,), 0.5))
            self.constant, self.act = lib.ones(5), lib.nn.functional.gelu

        def forward(self, x: Any) -> Any:
            x = lib.nn.functional.relu(self.norm(self.conv(x)), inplace=True)
            x = x.mean((2, 3)) * self.scale
            x = self.tail(self.shift + x) + lib.matmul(x, self.tail[0].weight.t())
            return self.act(self.layers["0"](x) * self.constant)

    return Block


def filled(lib: Any, module: Any) -> Any:
    with lib.no_grad():
        for i, parameter in enumerate(module.parameters()):
            parameter.copy_(lib.sin(lib.arange(parameter.numel()) * 0.7 + i).reshape(parameter.shape))
    return module


def test_modules_are_recorded_as_pytorch_records_them() -> None:
    expected, found = (recorded_graph(lib, block(lib)()) for lib in LIBRARIES)
    assert found == expected


def outcome(lib: Any, module: Any) -> list[Any]:
    x = lib.cos(lib.arange(2 * 3 * 4 * 4) * 0.3).reshape(2, 3, 4, 4).requires_grad_()
    y = module(x)
    y.square().sum().backward()
    return [y.tolist(), x.grad.tolist(), *(p.grad.tolist() for p in module.parameters())]


def test_code_computes_what_the_module_does() -> None:
    plain_module = filled(gradwire, block(gradwire)())
    expected = outcome(gradwire, plain_module)
    for parameter in plain_module.parameters():
        parameter.grad = None
    traced = fx.symbolic_trace(plain_module)
    assert outcome(gradwire, traced) == expected
    assert sorted(traced.state_dict()) == sorted([*plain_module.state_dict(), "constant"])
    copied = copy.deepcopy(traced)
    copied.zero_grad()
    assert outcome(gradwire, copied) == expected
    assert copied.code == traced.code and copied.graph is not traced.graph
    theirs = outcome(torch, torch.fx.symbolic_trace(filled(torch, block(torch)())))
    for mine, other in zip(expected, theirs, strict=True):
        torch.testing.assert_close(torch.tensor(mine), torch.tensor(other), rtol=1e-4, atol=1e-5)


def test_interpreters_and_transformers() -> None:
    module = filled(gradwire, block(gradwire)()).eval()
    traced = fx.symbolic_trace(module)
    x = gradwire.ones(1, 3, 4, 4)
    assert fx.Interpreter(traced).run(x).tolist() == module(x).tolist()

    class Sines(fx.Transformer):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            target = gradwire.sin if target is gradwire.nn.functional.gelu else target
            return super().call_function(target, args, kwargs)

    changed = Sines(traced).transform()
    assert "torch.sin(" in changed.code
    module.act = gradwire.sin
    assert changed(x).tolist() == module(x).tolist()


def rewritten(lib: Any) -> Any:
    def f(x: Any, w: Any) -> Any:
        return lib.relu(lib.add(x, w)) + lib.relu(lib.add(w, x)).sum()

    made = lib.fx.symbolic_trace(f)
    found = lib.fx.replace_pattern(made, lambda a, b: lib.relu(lib.add(a, b)), lambda a, b: lib.tanh(a) * b)
    made.graph.lint()
    return plain(made.code), [[str(v) for v in match.nodes_map.values()] for match in found]


def edited(lib: Any) -> Any:
    def f(x: Any) -> Any:
        lib.sin(x)
        return lib.relu(x + 1) * 2

    made = lib.fx.symbolic_trace(f)
    for node in made.graph.find_nodes(op="call_function", target=lib.relu):
        with made.graph.inserting_after(node):
            new = made.graph.call_method("clamp", (node.args[0],), {"min": 0.5})
            node.replace_all_uses_with(new)
        made.graph.erase_node(node)
    dead = made.graph.eliminate_dead_code()
    made.recompile()
    split = import_module(f"{lib.__name__}.fx.passes.split_module").split_module
    parts = split(made, made, lambda node: int(node.name == "mul"))
    shown = [plain(module.code) for module in (made, parts, parts.submod_0, parts.submod_1)]
    return shown, dead, [str(node) for node in made.graph.nodes], made(lib.tensor([-2.0, 3.0])).tolist()


@pytest.mark.parametrize("claim", [rewritten, edited], ids=lambda f: f.__name__)
def test_graphs_are_changed_as_pytorch_changes_them(claim: Any) -> None:
    if claim is edited:
        pytest.importorskip("sympy")  # PyTorch's split_module needs it
    expected, found = (claim(lib) for lib in LIBRARIES)
    assert found == expected


def refusals(lib: Any) -> Iterator[Any]:
    proxy = lib.fx.Proxy(lib.fx.Graph().placeholder("x"))
    yield lambda: bool(proxy)
    yield lambda: list(proxy)
    yield lambda: len(proxy)
    yield lambda: f"{proxy:d}"
    yield lambda: lib.fx.Graph().create_node("call_everything", "x")
    yield lambda: lib.fx.Graph().call_function(3)
    yield lambda: proxy.node.graph.call_method("add", [proxy.node])
    yield lambda: lib.fx.wrap("len")
    yield lambda: lib.fx.symbolic_trace(lambda x: x + object())

    def erase() -> None:
        (proxy + 1).node.graph.erase_node(proxy.node)

    def disorder() -> None:
        graph = lib.fx.Graph()
        first = graph.placeholder("x")
        second = graph.call_function(operator.add, (first, 1))
        second.append(first)
        graph.lint()

    def foreign() -> None:
        graph = lib.fx.Graph()
        graph.call_method("neg", (proxy.node,))
        graph.lint()

    def unknown() -> None:
        graph = lib.fx.Graph()
        graph.output(graph.call_module("missing", ()))
        lib.fx.GraphModule({}, graph)

    yield from (erase, disorder, foreign, unknown)


def test_refusals_have_the_classes_of_pytorch() -> None:
    def class_of(call: Callable[[], Any]) -> str:
        with pytest.raises(Exception) as caught:
            call()
        return next(c.__name__ for c in type(caught.value).__mro__ if c.__module__ == "builtins")

    expected, found = ([class_of(call) for call in refusals(lib)] for lib in LIBRARIES)
    assert found == expected


def test_every_public_function_takes_a_proxy() -> None:
    """Each records itself, not what it is made of, whichever argument the proxy is."""
    _names.home_of(len)
    tracer = fx.proxy.GraphAppendingTracer(fx.Graph())
    proxy = fx.Proxy(tracer.graph.placeholder("x"), tracer)
    missing = []
    for function, (namespace, name) in _names._homes.items():
        if name.startswith("_") or name in KEPT or namespace not in _names.NAMESPACES[:5]:
            continue
        for args in ((proxy,), (2, proxy), ([1, proxy],)):
            made = function(*args)
            form = fx.proxy.form_of(function)
            if not isinstance(made, fx.Proxy) or made.node.target not in (function, form):
                missing.append((namespace, name, args))
    assert not missing


def test_functions_stay_the_same_for_tensors() -> None:
    assert recorded(gradwire.relu, (gradwire.ones(2),), {}) is NotImplemented
    kept = gradwire.nn.functional.cross_entropy
    assert "label_smoothing" in str(import_module("inspect").signature(kept))
    assert kept(gradwire.ones(1, 2), gradwire.tensor([0])).item() == pytest.approx(math.log(2))
    with pytest.raises(TypeError):
        kept(gradwire.ones(1, 2), gradwire.tensor([0]), nothing=1)


def test_forms_of_functions_are_what_pytorch_records() -> None:
    command = [sys.executable, "-W", "ignore", "-m", "tools.function_forms", "--check"]
    root = function_forms.FILE.parents[3]
    assert subprocess.run(command, cwd=root, timeout=300, check=False).returncode == 0


def test_wrapped_functions_are_recorded_as_calls() -> None:
    made = fx.symbolic_trace(uses_leaf)
    assert [node.name for node in made.graph.nodes] == ["x", "leaf", "len_1", "add", "output"]
    assert made(gradwire.ones(3)).tolist() == [5.0, 5.0, 5.0]
    again = fx.symbolic_trace(made)
    assert [node.name for node in again.graph.nodes] == ["x", "leaf", "len_1", "add", "output"]
    assert leaf(gradwire.ones(1)).item() == 2


@fx.wrap
def leaf(x: Any) -> Any:
    return x * 2 if x.sum() > 0 else x  # type: ignore[attr-defined, unused-ignore]


fx.wrap("len")


def uses_leaf(x: Any) -> Any:
    return leaf(x) + len(x)


def test_code_has_no_names_but_those_of_the_graph() -> None:
    for name in ("x; import os", "x.y()", "x y", "", 'x"); print("y'):
        inputs, arguments, attributes = fx.Graph(), fx.Graph(), fx.Graph()
        inputs.output(inputs.placeholder(name))
        arguments.output(arguments.call_function(gradwire.add, (1, 2), {name: 3}))
        for graph in (inputs, arguments):
            with pytest.raises(ValueError, match="no place in code"):
                graph.python_code("self")
        x = attributes.placeholder("x")
        attributes.output(attributes.call_method(name, (x,)))
        with pytest.raises(AttributeError, match="has no attribute"):
            fx.GraphModule({}, attributes)(3)
    graph = fx.Graph()
    first = graph.placeholder("x")
    first.name = "x = __import__('os')"
    graph.output(first)
    assert fx.GraphModule({}, graph)(3) == 3


def test_a_graph_module_is_not_pickled() -> None:
    with pytest.raises(NotImplementedError, match="state_dict"):
        pickle.dumps(fx.symbolic_trace(uses_leaf))


def test_errors_in_generated_code_show_its_line() -> None:
    made = fx.symbolic_trace(lambda x: gradwire.matmul(x, x))
    with pytest.raises(RuntimeError) as caught:
        made(gradwire.ones(2, 3))
    lines = [str(entry.statement) for entry in caught.traceback if "eval_with_key" in str(entry.path)]
    assert any("torch.matmul(x, x)" in line for line in lines), lines
    with pytest.raises(RuntimeError) as interpreted:
        fx.Interpreter(made).run(gradwire.ones(2, 3))
    assert "While executing %matmul" in "".join(interpreted.value.__notes__)


def test_shapes_are_noted() -> None:
    from gradwire.fx.passes.shape_prop import ShapeProp

    made = fx.symbolic_trace(lambda x: gradwire.relu(x.reshape(3, 2)))
    ShapeProp(made).propagate(gradwire.ones(6))
    known = [node.meta["tensor_meta"] for node in made.graph.nodes]
    assert [(tuple(k.shape), k.dtype) for k in known][1:] == [((3, 2), gradwire.float32)] * 3
    assert '"f32[3, 2]"' in made.print_readable(print_output=False)


def test_batch_norms_are_fused() -> None:
    from gradwire.fx.experimental.optimization import fuse, remove_dropout

    module = filled(gradwire, block(gradwire)()).eval()
    fused = fuse(module)
    assert "norm" not in dict(fused.named_modules())
    x = gradwire.ones(1, 3, 4, 4)
    gradwire.testing.assert_close(fused(x), module(x), rtol=1e-4, atol=1e-5)
    dropping = gradwire.nn.Sequential(gradwire.nn.Linear(2, 2), gradwire.nn.Dropout())
    assert [n.op for n in remove_dropout(dropping).graph.nodes] == ["placeholder", "call_module", "output"]


def test_tracing_leaves_modules_as_they_were() -> None:
    before = gradwire.nn.Module.__call__, gradwire.nn.Module.__getattr__
    fx.symbolic_trace(block(gradwire)())
    with pytest.raises(ValueError, match="control flow"):
        fx.symbolic_trace(lambda x: 1 if x else 2)
    assert (gradwire.nn.Module.__call__, gradwire.nn.Module.__getattr__) == before
    assert "gradwire.fx" in sys.modules and not fx._symbolic_trace.is_fx_tracing()


def test_functions_are_as_they_were_when_no_proxy_is_left() -> None:
    import_module("gc").collect()  # proxies of other tests
    function = gradwire.nn.functional.cross_entropy
    before = function.__code__
    proxy = fx.Proxy(fx.Graph().placeholder("x"))
    assert function.__code__ is not before
    assert "cross_entropy" in function(proxy, proxy).node.name
    del proxy
    import_module("gc").collect()
    assert function.__code__ is before
    with pytest.warns(UserWarning, match="size_average") as told:
        gradwire.nn.functional.mse_loss(gradwire.ones(2), gradwire.ones(2), size_average=True)
    assert told[0].filename == __file__
