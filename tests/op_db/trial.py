"""One sample of the database under torch and another library, and their differences."""

from __future__ import annotations

import contextlib
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import gradwire

from .bridge import Bridge, from_numpy, named, rebound, unseeded
from .entries import CARRIED, PHASED, RANDOM, TIED, TIMES_ALPHA, ZERO_TO_ZERO

TOLERANCES = {
    torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float32: 2e-5, torch.float64: 1e-9,
    torch.complex64: 2e-5, torch.complex128: 1e-9,
}  # fmt: skip
GRADIENT_SLACK = 20.0


class Differs(AssertionError):
    """The library's outcome is not torch's."""


class Lacking(Exception):
    """The library has no such function."""


def operator_of(entry: Any, library: types.ModuleType) -> Callable[..., Any]:
    """The function of an entry in a library.

    Raises:
        Lacking: if it has none.
    """
    if library is torch:
        function: Callable[..., Any] = entry.op
        return function
    if isinstance(entry.op, types.FunctionType) and entry.op.__module__.startswith("torch.testing"):
        return rebound(entry.op, library)
    found = named(entry.name, library)
    if not callable(found) and "." not in entry.name:
        found = getattr(library.Tensor, entry.name, None)
    if not callable(found):
        raise Lacking(f"gradwire has no {entry.name}")
    return found  # type: ignore[no-any-return]


def tensors_in(value: Any, kind: type) -> list[Any]:
    """All tensors of a result, in order; Python's numbers and bools stay what they are."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors_in(v, kind)]
    return [value]


def tree(value: Any) -> Any:
    """How a result nests."""
    if isinstance(value, dict):
        return {k: tree(v) for k, v in value.items()}
    return [tree(v) for v in value] if isinstance(value, (list, tuple)) else 0


class Trial:
    """One sample: ``forward`` and ``gradient`` raise :class:`Differs`, or whatever the library raises."""

    def __init__(self, entry: Any, sample: Any, library: types.ModuleType, function: Callable[..., Any]) -> None:
        self.entry = entry
        self.sample = sample
        self.library = library
        self.function = function
        self.drawn = entry.name in RANDOM
        self.theirs = Bridge(torch)
        self.ours = self.carrier()

    def carrier(self) -> Bridge:
        """What carries the sample into the library."""
        return Bridge(self.library)

    def process(self, result: Any, library: types.ModuleType) -> Any:
        """What is unique of a result, and can be differentiated."""
        return rebound(self.sample.output_process_fn_grad, library)(result)

    def call(self, bridge: Bridge, function: Callable[..., Any]) -> Any:
        s = self.sample
        return function(bridge(s.input), *bridge(tuple(s.args)), **bridge(dict(s.kwargs)))

    def expected(self) -> bool:
        """Run torch. Whether it takes the sample at all."""
        for given in (self.sample.input, tuple(self.sample.args), dict(self.sample.kwargs)):
            self.theirs(given)  # what cannot be carried over is a defect of the bridge, not a refusal of torch's
        try:
            torch.manual_seed(1)
            with self.trusted():
                self.wanted = self.call(self.theirs, self.entry.op)
            if self.wanted is NotImplemented:  # a method's way to leave the operands to the other's
                return False
            if self.drawn:
                self.drawn = self.varies()
            if self.entry.name in PHASED:
                self.wanted_unique = self.process(self.wanted, torch)
        except Exception:
            return False
        return all(t.dtype in CARRIED for t in tensors_in(self.wanted, torch.Tensor) if isinstance(t, torch.Tensor))

    def trusted(self) -> Any:
        """torch without oneDNN where a float16 operand is given: on some processors its convolution of one is far off
        (by 200 where float64 has 50, with strides or dilations)."""
        given = tensors_in([self.sample.input, list(self.sample.args)], torch.Tensor)
        half = any(isinstance(t, torch.Tensor) and t.dtype is torch.float16 for t in given)
        return torch.backends.mkldnn.flags(enabled=torch.backends.mkldnn.enabled and not half)

    def varies(self) -> bool:
        """Whether the generator's state, or what memory held, shows in torch's results."""
        if any(part in self.entry.name for part in ("empty", "resize", "fractional")):
            return True
        function = unseeded(self.entry.op)
        wanted = tensors_in(self.call(Bridge(torch), function), torch.Tensor)
        for seed in range(2, 8):
            torch.manual_seed(seed)
            again = tensors_in(self.call(Bridge(torch), function), torch.Tensor)
            if any(not torch.equal(a.detach(), b.detach()) for a, b in zip(wanted, again, strict=True)):
                return True
        return False

    def forward(self) -> None:
        self.got = self.call(self.ours, self.function)
        got, wanted = self.got, self.wanted
        if self.entry.name in PHASED:
            self.compare_described(tensors_in(got, self.library.Tensor), tensors_in(wanted, torch.Tensor))
            got, wanted = self.process(got, self.library), self.wanted_unique
        if tree(got) != tree(wanted):
            raise Differs(f"nests as {tree(got)} instead of {tree(wanted)}")
        mine, their = tensors_in(got, self.library.Tensor), tensors_in(wanted, torch.Tensor)
        self.compare_described(mine, their)
        if self.entry.name in TIED and not self.sample.kwargs.get("stable"):
            mine, their = self.pointed_at(mine), self.pointed_at(their)
        self.compare_values(mine, their, 1.0)

    def tied(self) -> bool:
        """Whether equal elements leave open which of them receives a gradient."""
        if self.entry.name not in TIED:
            return False
        given = self.sample.input.detach()
        return bool(given.unique().numel() < given.numel())

    def pointed_at(self, results: list[Any]) -> list[Any]:
        """Indices replaced by the elements that they point at, where they do."""
        integers = "int64" in str(results[-1].dtype)
        if not integers or (len(results) == 1 and self.entry.name != "argsort") or self.sample.input.ndim == 0:
            return results
        source = self.source(results).detach()
        indices = results[-1]
        given = [v for v in (*self.sample.args, self.sample.kwargs.get("dim")) if type(v) is int]
        skip = 1 if self.entry.name in ("topk", "kthvalue") and self.sample.args else 0
        dim = given[skip] if len(given) > skip else (0 if self.entry.name in ("min", "max") else -1)
        if indices.ndim < source.ndim:
            indices = indices.unsqueeze(dim)
        return [*results[:-1], source.take_along_dim(indices, dim)]

    def source(self, results: list[Any]) -> Any:
        """The input, where these results are."""
        return (self.theirs if isinstance(results[-1], torch.Tensor) else self.ours)(self.sample.input)

    def masked_out(self, result: Any, bridge: Bridge) -> Any:
        """A masked operation's result, zero where its mask leaves it without meaning."""
        s = self.sample
        masks = [s.kwargs.get(m) for m in ("input_mask", "other_mask")]
        if self.entry.name == "masked.logaddexp":
            if None in masks:
                return result
            kept = torch.masked._input_mask(s.input, *s.args, mask=torch.logical_and(*masks))
        elif s.kwargs.get("mask") is None:
            return result
        else:
            kept = torch.masked._output_mask(self.entry.op, s.input.detach(), *s.args, **s.kwargs)
        return self.library.where(bridge(kept), result, result.new_zeros(()))

    def compare_described(self, mine: list[Any], their: list[Any]) -> None:
        if len(mine) != len(their):
            raise Differs(f"{len(mine)} results instead of {len(their)}")
        for i, (a, b) in enumerate(zip(mine, their, strict=True)):
            if not isinstance(b, torch.Tensor):
                continue
            if not isinstance(a, self.library.Tensor):
                raise Differs(f"result {i} is a {type(a).__name__}, not a tensor")
            if str(a.dtype) != str(b.dtype):
                raise Differs(f"result {i}: dtype {a.dtype} instead of {b.dtype}")
            if tuple(a.shape) != tuple(b.shape):
                raise Differs(f"result {i}: shape {tuple(a.shape)} instead of {tuple(b.shape)}")
            if a.requires_grad != b.requires_grad:
                raise Differs(f"result {i}: requires_grad {a.requires_grad} instead of {b.requires_grad}")

    def compare_values(self, mine: list[Any], their: list[Any], slack: float) -> None:
        asked = [a for a, b in zip(mine, their, strict=True) if isinstance(b, torch.Tensor)]
        values = iter(self.read(asked))
        for i, (a, b) in enumerate(zip(mine, their, strict=True)):
            if isinstance(b, torch.Tensor):
                value = next(values)
                if self.entry.name in TIMES_ALPHA and b.is_complex() and self.infinite():
                    value = torch.where(b.isnan(), b.detach(), value)
                if self.entry.name in ZERO_TO_ZERO and b.is_complex():
                    value = torch.where(b.isnan() & (value == 1), b.detach(), value)
                if not self.drawn:
                    check_close(f"result {i}", value, b.detach(), slack)
            elif not (a == b or (isinstance(b, float) and abs(a - b) <= 1e-5 * (1 + abs(b))) or (a != a and b != b)):
                raise Differs(f"result {i}: {a!r} instead of {b!r}")

    def infinite(self) -> bool:
        """Whether an operand has infinite elements."""
        given = (self.sample.input, *self.sample.args)
        return any(isinstance(v, torch.Tensor) and bool(v.isinf().any()) for v in given)

    def read(self, tensors: list[Any]) -> list[torch.Tensor]:
        """The values of the library's tensors, in one round trip."""
        if self.library is torch:
            return [t.detach() for t in tensors]
        arrays = gradwire.current_session().read([t.detach() for t in tensors])
        return [from_numpy(np.asarray(a)) for a in arrays]

    def gradient(self) -> None:
        """Gradients of a random weighting of what can be differentiated, in every input that requires grad."""
        wrapper = self.entry.gradcheck_wrapper
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if wrapper.__name__ == "<lambda>" and not wrapper.__code__.co_names:  # it hands on, as most do
                theirs, ours, wanted_all, got_all = self.theirs, self.ours, self.wanted, self.got
            else:
                theirs, ours = Bridge(torch), self.carrier()
                wanted_all = self.call(theirs, lambda *a, **k: wrapper(self.entry.op, *a, **k))
                if wrapper.__name__.startswith("gradcheck_wrapper_masked"):
                    got_all = self.masked_out(self.call(ours, self.function), ours)
                else:
                    wrapped = rebound(wrapper, self.library)
                    got_all = self.call(ours, lambda *a, **k: wrapped(self.function, *a, **k))
            wanted, got = self.process(wanted_all, torch), self.process(got_all, self.library)
        pairs = [
            (a, b)
            for a, b in zip(tensors_in(got, self.library.Tensor), tensors_in(wanted, torch.Tensor), strict=True)
            if isinstance(b, torch.Tensor) and b.requires_grad
        ]
        if not pairs or not theirs.leaves:
            return
        if not all(a.requires_grad for a, _ in pairs):
            raise Differs("a result does not require grad")
        seeds = [torch.randn_like(b.detach()) for _, b in pairs]
        their_grads = torch.autograd.grad(
            [b for _, b in pairs], [made for _, made in theirs.leaves], seeds, allow_unused=True
        )
        carry = self.carrier()
        our_grads = self.library.autograd.grad(
            [a for a, _ in pairs], [made for _, made in ours.leaves], [carry(s) for s in seeds], allow_unused=True
        )
        mine, their = [], []
        for (given, _), a, b in zip(ours.leaves, our_grads, their_grads, strict=True):
            if b is None:
                b = torch.zeros_like(given)
            mine.append(self.library.zeros(tuple(b.shape), dtype=carry(b.dtype)) if a is None else a)
            their.append(b)
        for i, (a, b) in enumerate(zip(mine, their, strict=True)):
            if str(a.dtype) != str(b.dtype) or tuple(a.shape) != tuple(b.shape):
                raise Differs(f"gradient {i}: {a.dtype}{tuple(a.shape)} instead of {b.dtype}{tuple(b.shape)}")
        self.compare_values(mine, their, GRADIENT_SLACK)


def check_close(what: str, value: torch.Tensor, wanted: torch.Tensor, slack: float) -> None:
    """Compare values: exactly for integers, else to the dtype's tolerance relative to the greatest of them."""
    wanted = wanted.resolve_conj().resolve_neg()
    if not (wanted.is_floating_point() or wanted.is_complex()):
        if not torch.equal(value, wanted):
            raise Differs(f"{what}: {value.flatten()[:6].tolist()} instead of {wanted.flatten()[:6].tolist()}")
        return
    tolerance = TOLERANCES[wanted.dtype] * slack
    wide = torch.complex128 if wanted.is_complex() else torch.float64
    a, b = value.to(wide), wanted.to(wide)
    finite = b[b.isfinite()].abs()
    scale = float(finite.max()) if finite.numel() else 1.0
    close = torch.isclose(a, b, rtol=tolerance, atol=tolerance * min(max(scale, 1.0), 1e30), equal_nan=True)
    if wanted.is_complex():  # one part is infinite: the other is rounded relative to that
        close |= (a.real.isinf() & (a.real == b.real)) | (a.imag.isinf() & (a.imag == b.imag))
    if not bool(close.all()):
        at = int((~close).flatten().nonzero()[0])
        raise Differs(f"{what}[{at}]: {a.flatten()[at].item()!r} instead of {b.flatten()[at].item()!r}")


def same_error(entry: Any, error: Any, library: types.ModuleType, function: Callable[..., Any]) -> bool:
    """Whether the library raises an error of the class that torch raises for an error input.

    Raises:
        Differs: telling what it does instead.
    """
    sample = error.sample_input

    def call(bridge: Bridge, f: Callable[..., Any]) -> Any:
        return f(bridge(sample.input), *bridge(tuple(sample.args)), **bridge(dict(sample.kwargs)))

    try:
        call(Bridge(torch, shared=True), entry.op)
        return False  # an error of other devices
    except Exception as raised:
        classes = tuple(c for c in type(raised).__mro__ if c.__module__ == "builtins" and c is not object)
    nearest = classes[0]
    try:
        result = call(Bridge(library, shared=True), function)
        if library is not torch:
            found = tensors_in(result, library.Tensor)
            gradwire.current_session().read([t for t in found if isinstance(t, library.Tensor)])
            gradwire.current_session().synchronize()
    except nearest:
        return True
    except Exception as raised:
        raise Differs(f"{type(raised).__name__} instead of {nearest.__name__}: {raised!s:.150}") from raised
    finally:
        if library is not torch:
            with contextlib.suppress(gradwire.GradwireError):
                gradwire.current_session().synchronize()
    raise Differs(f"accepted, torch raises {nearest.__name__}")
