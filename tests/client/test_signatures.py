"""Every function, method and class of the public namespaces tells its arguments; what the op table made says more."""

from __future__ import annotations

import importlib
import inspect
import pickle
import pkgutil
import types
from collections.abc import Iterator
from inspect import Parameter
from typing import Any, NoReturn

import pytest

import gradwire
from gradwire._core.surface.methods import FUNCTIONS
from gradwire._core.surface.stand_ins import StandIn
from gradwire_protocol.table import TABLE

AS_THEY_COME = {
    "fx.GraphModule": "each gets a class of its own, also one that a program derives",
    "autograd.Function": "instances do nothing, and warn, whatever they are given",
    "utils.checkpoint.CheckpointFunction": "as every Function",
    "autograd.Function.forward": "a program's own",
    "autograd.Function.backward": "a program's own",
    "autograd.Function.jvp": "a program's own",
    "autograd.Function.apply": "takes what the program's forward takes",
    "nn.Module.forward": "a program's own",
    "nn.Module.compile": "takes what compile takes, and does nothing, as PyTorch's here",
    "nn.Identity": "ignores whatever it is given, as PyTorch's",
    "nn.DataParallel.forward": "takes what its module takes",
    "nn.lazy.LazyModuleMixin": "passes on what the other class takes",
    "nn.lazy.LazyModuleMixin.initialize_parameters": "a program's own",
    "nn.parallel.distributed.DistributedDataParallel.forward": "takes what its module takes",
    "optim.swa_utils.AveragedModel.forward": "takes what its module takes",
    "utils.data.StackDataset": "datasets in a row or by name",
}
"""What takes any arguments, and why."""


def modules() -> Iterator[types.ModuleType]:
    yield gradwire
    names = [found.name for found in pkgutil.walk_packages(gradwire.__path__, "gradwire.")]
    for name in sorted(names, key=lambda name: not name.startswith("gradwire.nn")):  # others have its modules, too
        if not any(part.startswith("_") or part == "cli" for part in name.split(".")):
            yield importlib.import_module(name)


def callables() -> Iterator[tuple[str, Any]]:
    """What the public modules have of gradwire's own that can be called, each once and by its first name."""
    seen: set[int] = set()
    for module in modules():
        for name, value in list(vars(module).items()):
            ours = str(getattr(value, "__module__", "")).startswith(("gradwire", "torch"))
            if name.startswith("_") or not callable(value) or not ours or StandIn in (value, type(value)):
                continue
            members = vars(value).items() if isinstance(value, type) else ()
            for member, found in (("", value), *members):
                found = getattr(found, "__func__", found)
                if id(found) in seen or member.startswith("_") or not (not member or inspect.isfunction(found)):
                    continue
                seen.add(id(found))
                yield f"{module.__name__}.{name}.{member}".strip(".").removeprefix("gradwire."), found


def takes_anything(shown: inspect.Signature) -> bool:
    kinds = [p.kind for p in shown.parameters.values() if p.name not in ("self", "cls", "ctx")]
    return sorted(kinds) == [Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD]


def test_everything_that_can_be_called_tells_its_arguments() -> None:
    lacking, count = [], 0
    for name, value in callables():
        count += 1
        if isinstance(value, type) and issubclass(value, Exception):
            continue  # made as Python's exceptions are
        shown = inspect.signature(value)
        refused = shown.return_annotation in (NoReturn, "NoReturn")
        if takes_anything(shown) and not refused and name not in AS_THEY_COME:
            lacking.append(name)
    assert not lacking
    assert count > 2000


def test_every_parameter_has_a_type() -> None:
    untyped = [
        f"{name}: {p.name}"
        for name, function in {**FUNCTIONS, **vars(gradwire.Tensor)}.items()
        if inspect.isfunction(function)
        for p in inspect.signature(function).parameters.values()
        if p.annotation is Parameter.empty and p.name != "self"
    ]
    assert not untyped


@pytest.mark.parametrize("name", [op.name for op in TABLE.values() if "function" in op.exposed])
def test_a_function_is_called_as_its_op_is_declared(name) -> None:
    op, shown = TABLE[name], inspect.signature(gradwire._core.surface.methods.function_of(TABLE[name]))
    named = ["input" if p.name == "self" and not at else p.name for at, p in enumerate(op.params)]
    assert [p for p in shown.parameters if p not in ("out", "generator")] == named
    for param, declared in zip(shown.parameters.values(), op.params):
        if param.kind is not Parameter.VAR_POSITIONAL and not declared.required:
            assert param.default == declared.default
    assert shown.parameters.keys() >= ({"generator"} if op.random else set())


def test_a_signature_is_like_any_other() -> None:
    shown = inspect.signature(gradwire.matmul)
    assert str(shown) == "(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor"
    assert shown.bind(1, other=2).arguments == {"input": 1, "other": 2}
    assert pickle.loads(pickle.dumps(shown)) == shown  # noqa: S301
    assert [*shown.replace(parameters=[]).parameters] == []
    assert [*inspect.signature(gradwire.zeros(2).matmul).parameters] == ["other", "out"]


def test_help_shows_arguments_shapes_dtypes_and_errors() -> None:
    doc = inspect.getdoc(gradwire.matmul)
    assert "Args:\n    input: tensor\n    other: tensor" in doc
    assert "Shapes and dtypes: all operands have one dtype." in doc
    assert "    ShapeError: " in doc
    assert "dim: int | ints | None = None" in inspect.getdoc(gradwire.sum)
    assert "integers become the default float dtype" in inspect.getdoc(gradwire.Tensor.tanh)


def test_functions_are_named_after_where_they_are_found() -> None:
    for name in ("matmul", "sum", "max", "zeros", "einsum"):
        function = getattr(gradwire, name)
        assert function.__name__ == function.__qualname__ == name
        assert pickle.loads(pickle.dumps(function)) is function  # noqa: S301
