"""Questions about tensors and dtypes that are answered from metas, with no round trip."""

from __future__ import annotations

from typing import Any

from gradwire_protocol import promotion
from gradwire_protocol.dtypes import OF_PYTHON_TYPES, DType
from gradwire_protocol.errors import ArgumentTypeError
from gradwire_protocol.promotion import ScalarKind

from ..context.late_signatures import called_as
from ..session.current_session import get_default_dtype
from ..tensor.tensor import Tensor


def is_tensor(value: object) -> bool:
    """Whether ``value`` is a gradwire tensor."""
    return isinstance(value, Tensor)


def is_distributed(input: Tensor) -> bool:
    """Whether the tensor is one of several that a cluster shares: none is."""
    return False


def typename(value: object) -> str:
    """What PyTorch calls the type of a value: ``torch.FloatTensor`` for tensors, else module and name."""
    if isinstance(value, Tensor):
        return str(value.type())
    kind = value if hasattr(value, "__qualname__") else type(value)
    module = getattr(kind, "__module__", "") or ""
    return kind.__qualname__ if module in ("", "builtins") else f"{module}.{kind.__qualname__}"


def is_floating_point(input: Tensor) -> bool:
    """Whether the tensor's dtype is a floating point one."""
    return input.is_floating_point()


def is_complex(input: Tensor) -> bool:
    """Whether the tensor's dtype is complex."""
    return input.is_complex()


def is_inference(input: Tensor) -> bool:
    """Whether the tensor was made in inference mode."""
    return input.is_inference()


def can_cast(from_: DType, to: DType) -> bool:
    """Whether in-place operations may write one dtype into the other."""
    return promotion.can_cast(OF_PYTHON_TYPES.get(from_, from_), OF_PYTHON_TYPES.get(to, to))  # type: ignore


def promote_types(type1: DType, type2: DType) -> DType:
    """The dtype that an operation on tensors of two dtypes gives."""
    return promotion.join(OF_PYTHON_TYPES.get(type1, type1), OF_PYTHON_TYPES.get(type2, type2))  # type: ignore


def _result_type_form(
    tensor: Any = ..., other: Any = ..., *, scalar: Any = ..., scalar1: Any = ..., scalar2: Any = ...
) -> DType:
    raise NotImplementedError


@called_as(_result_type_form)
def result_type(*operands: Any, **named: Any) -> DType:
    """The dtype that an operation on tensors and Python numbers gives.

    Args:
        operands, named: two of them; PyTorch's names are ``tensor``, ``other``, ``scalar``, ``scalar1``, ``scalar2``.

    Raises:
        ArgumentTypeError: for anything else.
    """
    unknown = named.keys() - set(_result_type_form.__code__.co_varnames)
    if unknown:
        raise ArgumentTypeError(f"result_type got an unexpected keyword argument {min(unknown)!r}")
    described: list[Any] = []
    for operand in (*operands, *named.values()):
        kind = ScalarKind.of(operand)
        if isinstance(operand, Tensor):
            described.append((operand.dtype, operand.ndim))
        elif kind is not None:
            described.append(kind)
        else:
            raise ArgumentTypeError(f"result_type takes tensors and numbers, not {type(operand).__name__}")
    promotion.DEFAULT_FLOAT.set(get_default_dtype())
    return promotion.result_type(described)
