"""``torch.nn.utils.prune``: parameters of which some elements are kept at zero.

A pruned parameter ``name`` is trained as ``{name}_orig``; the buffer ``{name}_mask`` has a 0 for what is pruned, and
before each forward ``name`` is set to their product.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

from gradwire_protocol.errors import ArgumentTypeError, ArgumentValueError, IndexOutOfRange

from ..._core.dispatch.dispatch import call
from ..._core.modules.module import Module, SomeModule
from ..._core.surface.creation import rand
from ..._core.surface.creation_like import ones_like, rand_like, zeros_like
from ..._core.tensor.tensor import Tensor
from .vector import parameters_to_vector


class BasePruningMethod(ABC):
    """A way of choosing what is pruned. A subclass defines :meth:`compute_mask` and ``PRUNING_TYPE``: whether it looks
    at single elements (``"unstructured"``), at slices along ``dim`` (``"structured"``), or at all there is
    (``"global"``)."""

    PRUNING_TYPE: ClassVar[str]
    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask for a tensor of importances ``t``: ``default_mask`` with zeros for what is pruned."""

    def apply_mask(self, module: Module) -> Tensor:
        """The pruned parameter of a module."""
        mask, original = (getattr(module, self._tensor_name + part) for part in ("_mask", "_orig"))
        return mask.to(original.dtype) * original

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prune a parameter, further than it may be pruned already.

        Args:
            importance_scores: what to judge by in the parameter's place, of its shape.
            args: for the constructor, as ``kwargs``.
        """
        method = cls(*args, **kwargs)
        method._tensor_name = name
        before = [n for n, h in module._forward_pre_hooks.items() if _prunes(h, name)]
        container: BasePruningMethod = method
        if before:
            older = module._forward_pre_hooks[before[0]]
            container = older if isinstance(older, PruningContainer) else PruningContainer(older)
            container.add_pruning_method(method)
        parameter = getattr(module, name)
        scores = _scores(importance_scores, parameter)
        default = getattr(module, f"{name}_mask").detach().clone() if before else ones_like(parameter)
        mask = container.compute_mask(scores.detach(), default_mask=default)
        for number in before:
            del module._forward_pre_hooks[number]
        if not before:
            module.register_parameter(f"{name}_orig", parameter)
            del module._parameters[name]
        module.register_buffer(f"{name}_mask", mask)
        setattr(module, name, container.apply_mask(module))
        module.register_forward_pre_hook(container)
        return container

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """A tensor with zeros for what is pruned, judged by itself unless there are other importances."""
        scores = _scores(importance_scores, t)
        return t * self.compute_mask(scores, default_mask=ones_like(t) if default_mask is None else default_mask)

    def remove(self, module: Module) -> None:
        """Make the parameter an ordinary one again. What is zero stays zero."""
        name = self._tensor_name
        weight = self.apply_mask(module).detach()
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters.pop(f"{name}_orig")
        original.data = weight
        del module._buffers[f"{name}_mask"]
        setattr(module, name, original)


def _scores(given: Any, parameter: Tensor) -> Any:
    if given is not None and given.shape != parameter.shape:
        raise AssertionError(
            f"importance_scores have the parameter's shape, {list(parameter.shape)}, not {list(given.shape)}"
        )
    return parameter if given is None else given


def _prunes(hook: Any, name: str) -> bool:
    return isinstance(hook, BasePruningMethod) and hook._tensor_name == name


class PruningContainer(BasePruningMethod):
    """Several prunings of one parameter, each of what those before have left."""

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        for method in args:
            if not self._pruning_methods:
                self._tensor_name = method._tensor_name
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod | None) -> None:
        """Prune further.

        Raises:
            ArgumentTypeError: for what is no pruning method.
            ArgumentValueError: for one of another parameter.
        """
        if not isinstance(method, BasePruningMethod):
            raise ArgumentTypeError(f"{type(method).__name__} is no pruning method")
        if method._tensor_name != self._tensor_name:
            raise ArgumentValueError(f"this container prunes {self._tensor_name!r}, not {method._tensor_name!r}")
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: int) -> BasePruningMethod:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask with what the last method prunes of what is left."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(t.dtype)
        left = self._left(method, t, default_mask)
        mask = mask.clone() if mask is default_mask else mask
        mask[left] = method.compute_mask(t[left], default_mask=default_mask[left]).to(mask.dtype)
        return mask

    @staticmethod
    def _left(method: Any, t: Tensor, mask: Tensor) -> Any:
        if method.PRUNING_TYPE == "unstructured":
            return mask == 1
        everything: list[Any] = [slice(None)] * t.ndim
        if method.PRUNING_TYPE == "structured":
            dim = method.dim + t.ndim if method.dim < 0 else method.dim
            if dim < 0:
                raise IndexOutOfRange(f"there is no dimension {method.dim} in a tensor of shape {list(t.shape)}")
            everything[dim] = mask.sum(dim=[d for d in range(t.ndim) if d != dim]) != 0
        elif method.PRUNING_TYPE != "global":
            raise ArgumentValueError(f"a pruning is unstructured, structured or global, not {method.PRUNING_TYPE!r}")
        return tuple(everything)


class _Amount(BasePruningMethod):
    """A method that prunes so many elements or slices, or a share of them."""

    def __init__(self, amount: float) -> None:
        whole = isinstance(amount, Integral)
        if not isinstance(amount, Real):
            raise ArgumentTypeError(f"the amount is a number or a share, not {amount!r}")
        if float(amount) < 0.0 or (not whole and float(amount) > 1):
            raise ArgumentValueError(f"the amount is a number from 0 or a share from 0 to 1, not {amount}")
        self.amount: Any = amount

    def _count(self, size: int) -> int:
        if not isinstance(self.amount, Integral):
            return round(float(self.amount) * size)
        count = int(self.amount)
        if count > size:
            raise ArgumentValueError(f"{count} cannot be pruned of {size}")
        return count

    def _slices(self, t: Any, dim: int) -> int:
        if t.ndim <= 1:
            raise ArgumentValueError(f"slices are pruned of matrices and more, not of shape {list(t.shape)}")
        if dim >= t.ndim:
            raise IndexOutOfRange(f"there is no dimension {dim} in a tensor of shape {list(t.shape)}")
        size: int = t.shape[dim]
        return size


class Identity(BasePruningMethod):
    """Prunes nothing."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask as it is."""
        return default_mask


class _Unstructured(_Amount):
    PRUNING_TYPE = "unstructured"

    def _ranks(self, t: Any) -> Tensor:
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Zeros for the elements that rank lowest."""
        count = self._count(t.numel())
        mask = default_mask.clone()
        if count:
            lowest = call("topk", self._ranks(t).reshape(-1), count, -1, False)[1]
            mask.view(-1)[lowest] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Prunes elements at random: ``amount`` of them, or that share."""

    def _ranks(self, t: Any) -> Tensor:
        return rand_like(t)


class L1Unstructured(_Unstructured):
    """Prunes the elements of least magnitude: ``amount`` of them, or that share."""

    def _ranks(self, t: Any) -> Tensor:
        return t.abs()


class _Structured(_Amount):
    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim: int = dim

    def _ranks(self, t: Any, dim: int) -> Tensor:
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Zeros for the slices that rank lowest."""
        size = self._slices(t, self.dim)
        count = self._count(size)
        if not count:
            return default_mask
        dim = self.dim % t.ndim
        mask = zeros_like(t)
        highest = call("topk", self._ranks(t, dim), size - count, -1, True)[1]
        mask[(slice(None),) * dim + (highest,)] = 1
        return mask * default_mask.to(mask.dtype)


class RandomStructured(_Structured):
    """Prunes slices along ``dim`` at random: ``amount`` of them, or that share."""

    def _ranks(self, t: Any, dim: int) -> Tensor:
        return rand(t.shape[dim], device=t.device)


class LnStructured(_Structured):
    """Prunes the slices along ``dim`` of the least ``n``-norm: ``amount`` of them, or that share."""

    def __init__(self, amount: float, n: float | str, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n: float | str = n

    def _ranks(self, t: Any, dim: int) -> Tensor:
        return t.norm(p=self.n, dim=[d for d in range(t.ndim) if d != dim])


class CustomFromMask(BasePruningMethod):
    """Prunes what a given mask says."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask: Tensor = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Both masks."""
        return default_mask * self.mask.to(default_mask.dtype)


# The functions


def identity(module: SomeModule, name: str) -> SomeModule:
    """Have a parameter pruned, by nothing yet; returns the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: SomeModule, name: str, amount: float) -> SomeModule:
    """Prune elements of a parameter at random; returns the module."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: SomeModule, name: str, amount: float, importance_scores: Tensor | None = None
) -> SomeModule:
    """Prune the elements of a parameter that have the least magnitude; returns the module."""
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: SomeModule, name: str, amount: float, dim: int) -> SomeModule:
    """Prune slices of a parameter along a dimension at random; returns the module."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: SomeModule, name: str, amount: float, n: float | str, dim: int, importance_scores: Tensor | None = None
) -> SomeModule:
    """Prune the slices of a parameter along a dimension that have the least ``n``-norm; returns the module."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: SomeModule, name: str, mask: Tensor) -> SomeModule:
    """Prune what a mask says; returns the module."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Any, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune several parameters, (module, name) each, as if they were one.

    Args:
        pruning_method: a class that prunes single elements.
        importance_scores: what to judge by instead of a parameter, by (module, name).
        kwargs: for the class.

    Raises:
        ArgumentTypeError: for another kind of method.
    """
    if not isinstance(parameters, Iterable):
        raise ArgumentTypeError(f"the parameters are pairs in an iterable, not {type(parameters).__name__}")
    places = list(parameters)
    given = {} if importance_scores is None else importance_scores
    if not isinstance(given, dict):
        raise ArgumentTypeError(f"importance_scores are a dict by (module, name), not {type(given).__name__}")
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise ArgumentTypeError(f"only single elements are pruned globally, {pruning_method.__name__} does not")
    found = [getattr(module, name) for module, name in places]
    scores = parameters_to_vector([given.get(place, p) for place, p in zip(places, found, strict=True)])
    masks: list[Any] = [getattr(m, f"{name}_mask", None) for m, name in places]
    masks = [ones_like(p) if mask is None else mask for mask, p in zip(masks, found, strict=True)]
    mask = PruningContainer(method).compute_mask(scores.detach(), parameters_to_vector(masks))
    start = 0
    for (module, name), parameter in zip(places, found, strict=True):
        stop = start + parameter.numel()
        custom_from_mask(module, name, mask[start:stop].view_as(parameter))
        start = stop


def remove(module: SomeModule, name: str) -> SomeModule:
    """Make a pruned parameter an ordinary one again, with its zeros; returns the module.

    Raises:
        ArgumentValueError: when it is not pruned.
    """
    for number, hook in module._forward_pre_hooks.items():
        if _prunes(hook, name):
            hook.remove(module)
            del module._forward_pre_hooks[number]
            return module
    raise ArgumentValueError(f"{name!r} of {type(module).__name__} is not pruned")


def is_pruned(module: Module) -> bool:
    """Whether any parameter of a module or of those below it is pruned."""
    return any(isinstance(hook, BasePruningMethod) for m in module.modules() for hook in m._forward_pre_hooks.values())
