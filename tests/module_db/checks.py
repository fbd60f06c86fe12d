"""The checks of one input of one class; each difference from torch is a line of text."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_modules import ModuleErrorEnum, ModuleInfo

import gradwire
from tests.side_by_side import built_in, settle

from .crossing import Crossing, Lacking, known_dtype, moved, plain, tensors_in

TOLERANCES = {
    torch.float16: (8e-3, 4e-3), torch.bfloat16: (3e-2, 3e-2), torch.float32: (1e-4, 1e-5),
    torch.complex64: (1e-4, 1e-5), torch.float64: (1e-9, 1e-10), torch.complex128: (1e-9, 1e-10),
}  # fmt: skip
"""Relative and absolute, by the dtype of the database's inputs."""

WIDER = {"nn.CTCLoss": 30, "nn.Transformer": 4}
"""Classes whose error in float32 is larger in PyTorch, too: sums of exponentials of what is far from 0, and several
normalised layers behind each other (its float32 gradients are up to 1.7e-5 from its own float64 ones)."""


@dataclass(frozen=True)
class Case:
    """One input of one class: in a dtype, in a mode, and which of the list it is."""

    info: ModuleInfo
    dtype: torch.dtype
    training: bool
    index: int
    given: Any
    is_error: bool = False

    @property
    def label(self) -> str:
        mode = "training" if self.training else "evaluation"
        kind = "error input" if self.is_error else "input"
        description = getattr(self.given, "desc", "")
        return f"{str(self.dtype).removeprefix('torch.')} {mode} {kind} {self.index} {description}".rstrip()


def dtypes(info: ModuleInfo) -> list[torch.dtype]:
    """The dtypes of a class's inputs, as far as gradwire has them."""
    return [dtype for dtype in info.dtypes if known_dtype(dtype) is not None]


def cases(info: ModuleInfo, only: torch.dtype | None = None) -> Iterator[Case]:
    """All inputs that the database has for a class, or those of one dtype. Error inputs come in float32."""
    modes = (True, False) if info.train_and_eval_differ else (True,)
    for dtype in dtypes(info):
        if only not in (None, dtype):
            continue
        for training in modes:
            made = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training)
            for index, given in enumerate(made):
                yield Case(info, dtype, training, index, given)
    if info.module_error_inputs_func is not None and only in (None, torch.float32):
        made = info.module_error_inputs_func(
            info, device="cpu", dtype=torch.float32, requires_grad=False, training=True
        )
        for index, given in enumerate(made):
            yield Case(info, torch.float32, True, index, given, is_error=True)


def problems(case: Case) -> list[str]:
    """Where gradwire differs from torch on one input; none is what one wants."""
    ours = getattr(gradwire.nn, case.info.name.removeprefix("nn."), None)
    if ours is None:
        return [f"gradwire has no {case.info.name}"]
    try:
        found = list((_error_problems if case.is_error else _input_problems)(case, ours))
    except Lacking as lack:
        return [str(lack)]
    except Exception as error:
        found = [f"{type(error).__name__}: {error}"]
    try:
        settle()
    except gradwire.GradwireError as error:
        found.append(f"raised afterwards: {type(error).__name__}: {error}")
    return found


def _error_problems(case: Case, ours: type) -> Iterator[str]:
    given = case.given.module_error_input
    constructor, forward = Crossing(), Crossing()
    args, kwargs = constructor.pair(given.constructor_input.args), constructor.pair(given.constructor_input.kwargs)
    makers = case.info.module_cls, ours
    if case.given.error_on is ModuleErrorEnum.CONSTRUCTION_ERROR:
        attempts = [lambda i=i: makers[i](*args[i], **kwargs[i]) for i in (0, 1)]
    else:
        inputs = forward.pair(given.forward_input.args), forward.pair(given.forward_input.kwargs)
        modules = [makers[i](*args[i], **kwargs[i]) for i in (0, 1)]
        attempts = [lambda i=i: modules[i](*inputs[0][i], **inputs[1][i]) for i in (0, 1)]
    expected, found = map(_raised, attempts)
    if expected != found:
        yield f"torch raises {expected}, gradwire {found}"


def _raised(attempt: Callable[[], Any]) -> str | None:
    try:
        attempt()
        settle()
    except Exception as error:
        return built_in(error)
    return None


def _input_problems(case: Case, ours: type) -> Iterator[str]:
    crossing = Crossing()
    args, kwargs = (crossing.pair(part) for part in (case.given.constructor_input.args,
                                                     case.given.constructor_input.kwargs))  # fmt: skip
    theirs_module = case.info.module_cls(*args[0], **kwargs[0]).to(case.dtype).train(case.training)
    ours_module = ours(*args[1], **kwargs[1]).to(known_dtype(case.dtype)).train(case.training)
    crossing.leaves.clear()
    given = case.given.forward_input
    args, kwargs = crossing.pair(given.args), crossing.pair(given.kwargs)
    if repr(theirs_module) != repr(ours_module):
        yield f"printed {ours_module!r}, not {theirs_module!r}"
    if case.info.is_lazy:  # a first call gives parameters their shapes
        theirs_module(*args[0], **kwargs[0])
        ours_module(*args[1], **kwargs[1])
    yield from _state_problems(theirs_module, ours_module)
    ours_module.load_state_dict({name: moved(value) for name, value in theirs_module.state_dict().items()})
    random = _is_random(theirs_module, args[0], kwargs[0])
    copied = copy.deepcopy(ours_module)
    if repr(copied) != repr(ours_module):
        yield f"a deep copy prints {copied!r}"

    expected = list(tensors_in(theirs_module(*args[0], **kwargs[0])))
    found = list(tensors_in(ours_module(*args[1], **kwargs[1])))
    if len(expected) != len(found):
        yield f"torch gives {len(expected)} tensors, gradwire {len(found)}"
        return
    for i, pair in enumerate(zip(expected, found, strict=True)):
        yield from _difference(f"result {i}", *pair, case, values=not random)
    if not random:
        yield from _gradient_problems(case, crossing, theirs_module, ours_module, expected, found)
    for name, buffer in theirs_module.named_buffers():
        yield from _difference(f"buffer {name}", buffer, ours_module.get_buffer(name), case, values=not random)
    for i, pair in enumerate(zip(expected, tensors_in(copied(*args[1], **kwargs[1])), strict=True)):
        yield from _difference(f"a deep copy's result {i}", *pair, case, values=not random)
    for mode in (not case.training, case.training):
        theirs_modes = [m.training for m in theirs_module.train(mode).modules()]
        if [m.training for m in ours_module.train(mode).modules()] != theirs_modes:
            yield f"train({mode}) sets other modules' mode than torch does"


def _is_random(module: Any, args: Any, kwargs: Any) -> bool:
    """Whether two calls in the same state differ: then only shapes can be compared."""
    first, second = ([plain(t) for t in tensors_in(copy.deepcopy(module)(*args, **kwargs)) if t is not None]
                     for _ in range(2))  # fmt: skip
    return not all(np.array_equal(a, b, equal_nan=True) for a, b in zip(first, second, strict=True))


def _state_problems(theirs: Any, ours: Any) -> Iterator[str]:
    described = [
        {name: (tuple(value.shape), repr(value.dtype)) for name, value in module.state_dict().items()}
        for module in (theirs, ours)
    ]
    if list(described[0].items()) != list(described[1].items()):
        yield f"the state dict is {described[1]}, not {described[0]}"
    trained = [[name for name, p in m.named_parameters() if p.requires_grad] for m in (theirs, ours)]
    if trained[0] != trained[1]:
        yield f"the parameters are {trained[1]}, not {trained[0]}"


def _gradient_problems(
    case: Case, crossing: Crossing, theirs: Any, ours: Any, expected: list[Any], found: list[Any]
) -> Iterator[str]:
    # Indices, which torch lets require grad, have no gradient.
    inexact = [(t, g) for t, g in zip(expected, found, strict=True) if t is not None and t.dtype in TOLERANCES]
    if [t.requires_grad for t, _ in inexact] != [g.requires_grad for _, g in inexact]:
        yield "other results require grad than torch's"
        return
    weighed = [(t, g, torch.randn_like(t)) for t, g in inexact if t.requires_grad]
    places = [(f"input {i}", *leaf) for i, leaf in enumerate(crossing.leaves)]
    ours_by_name = dict(ours.named_parameters())
    places += [(name, p, ours_by_name[name]) for name, p in theirs.named_parameters() if p.requires_grad]
    if not weighed or not places:
        return
    torch_grads = torch.autograd.grad(
        [t for t, _, _ in weighed], [p for _, p, _ in places], [w for _, _, w in weighed], allow_unused=True
    )
    our_grads = gradwire.autograd.grad(
        [g for _, g, _ in weighed], [p for _, _, p in places], [moved(w) for _, _, w in weighed], allow_unused=True
    )
    for (name, _, _), expected_grad, found_grad in zip(places, torch_grads, our_grads, strict=True):
        yield from _difference(f"gradient of {name}", expected_grad, found_grad, case)


def _difference(what: str, expected: Any, found: Any, case: Case, values: bool = True) -> Iterator[str]:
    if expected is None or found is None:
        if expected is not None or found is not None:
            yield f"{what}: torch {'None' if expected is None else 'a tensor'}, gradwire the other"
        return
    if tuple(expected.shape) != tuple(found.shape) or repr(expected.dtype) != repr(found.dtype):
        yield f"{what}: {found.dtype}{list(found.shape)}, not {expected.dtype}{list(expected.shape)}"
        return
    if not values:
        return
    relative, absolute = (t * WIDER.get(case.info.name, 1) for t in TOLERANCES[case.dtype])
    theirs, ours = plain(expected), plain(found)
    # What is small beside its neighbours may be a difference of what is large.
    largest = np.max(np.abs(theirs), initial=1, where=np.isfinite(theirs))
    absolute *= max(float(largest), 1.0)
    if not np.allclose(ours, theirs, rtol=relative, atol=absolute, equal_nan=True):
        with np.errstate(invalid="ignore"):
            worst = np.max(np.abs(ours - theirs)) if ours.size else 0
        yield f"{what}: values differ by up to {worst:.3g}"
