"""Calls whose result depends on their arguments: what :mod:`tools.stubs` writes in place of their one signature.

A method has the same forms as the function of its name; the function's first argument is its tensor. A function of
``torch.nn.functional`` has forms of its own.
"""

from __future__ import annotations

import ast
from inspect import Parameter, Signature
from typing import Final

_ALONG: Final = (
    "(input: Tensor) -> Tensor",
    "(input: Tensor, dim: int, keepdim: bool = False, *, out: Sequence[Tensor] | None = None) -> return_types.{name}",
)
_OPTIONS: Final = (
    "dtype: dtype | None = None, layout: layout | None = None, device: device | str | int | None = None, "
    "requires_grad: bool = False, pin_memory: bool = False"
)
_NETWORK: Final = (
    "params: Sequence[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool"
)
_UNIQUE: Final = (
    ("", "return_inverse: Literal[False] = False, return_counts: Literal[False] = False", "Tensor"),
    ("*, ", "return_inverse: Literal[True], return_counts: Literal[False] = False", "tuple[Tensor, Tensor]"),
    ("*, ", "return_inverse: Literal[False] = False, return_counts: Literal[True]", "tuple[Tensor, Tensor]"),
    ("*, ", "return_inverse: Literal[True], return_counts: Literal[True]", "tuple[Tensor, Tensor, Tensor]"),
    ("", "return_inverse: bool = False, return_counts: bool = False", "Tensor | tuple[Tensor, ...]"),
)
_WINDOWS: Final = (
    "kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, "
    "dilation: int | Sequence[int] = 1, ceil_mode: bool = False"
)
_FRACTIONS: Final = (
    "kernel_size: int | Sequence[int], output_size: int | Sequence[int] | None = None, "
    "output_ratio: float | Sequence[float] | None = None"
)


def _with_indices(arguments: str, rest: str = "") -> tuple[str, ...]:
    """A pool that returns also where its maxima were, if asked to."""
    return (
        f"(input: Tensor, {arguments}, return_indices: Literal[False] = False{rest}) -> Tensor",
        f"(input: Tensor, {arguments}, *, return_indices: Literal[True]{rest}) -> tuple[Tensor, Tensor]",
        f"(input: Tensor, {arguments}, return_indices: bool = False{rest}) -> Tensor | tuple[Tensor, Tensor]",
    )


_FORMS: Final = {
    "max min": (*_ALONG, "(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor"),
    "median nanmedian": _ALONG,
    "where": (
        "(condition: Tensor) -> tuple[Tensor, ...]",
        "(condition: Tensor, input: Tensor | complex, other: Tensor | complex, *, out: Tensor | None = None) -> Tensor",
    ),
    "Tensor.where": ("(self, condition: Tensor, other: Tensor | complex) -> Tensor",),
    "nonzero": (
        "(input: Tensor, *, as_tuple: Literal[False] = False, out: Tensor | None = None) -> Tensor",
        "(input: Tensor, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]",
    ),
    "randint": tuple(
        f"({bounds}: int, size: Sequence[int], *, generator: Generator | None = None, out: Tensor | None = None, "
        f"{_OPTIONS}) -> Tensor"
        for bounds in ("high", "low: int, high")
    ),
    **{
        names: (
            f"(input: Tensor, hx: {hx}, {_NETWORK}, batch_first: bool) -> {found}",
            f"(data: Tensor, batch_sizes: Tensor, hx: {hx}, {_NETWORK}) -> {found}",
        )
        for names, hx, found in (
            ("rnn_tanh rnn_relu gru", "Tensor", "tuple[Tensor, Tensor]"),
            ("lstm", "Sequence[Tensor]", "tuple[Tensor, Tensor, Tensor]"),
        )
    },
    "unique": tuple(
        f"(input: Tensor, sorted: bool = True, {star}{wanted}, dim: int | None = None) -> {found}"
        for star, wanted, found in _UNIQUE
    ),
    "unique_consecutive": tuple(
        f"(input: Tensor, {star}{wanted}, dim: int | None = None) -> {found}" for star, wanted, found in _UNIQUE
    ),
    "atleast_1d atleast_2d atleast_3d": (
        "(tensors: Tensor) -> Tensor", "(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]",
        "(first: Tensor, second: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]",
    ),
    "lu": (
        "(A: Tensor, pivot: bool = True, get_infos: Literal[False] = False, *, "
        "out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor]",
        "(A: Tensor, pivot: bool = True, *, get_infos: Literal[True], "
        "out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor, Tensor]",
    ),
    **{f"nn.functional.max_pool{n}d": _with_indices(_WINDOWS) for n in (1, 2, 3)},
    **{
        f"nn.functional.adaptive_max_pool{n}d": _with_indices("output_size: int | Sequence[int | None]")
        for n in (1, 2, 3)
    },
    **{
        f"nn.functional.fractional_max_pool{n}d": _with_indices(_FRACTIONS, ", _random_samples: Tensor | None = None")
        for n in (2, 3)
    },
    "Tensor.__iter__": ("(self) -> Iterator[Tensor]",),
    "Tensor.__new__": ("(cls, *args: Any, device: device | str | int | None = None) -> Self",),
    "Tensor.to": (
        "(self, dtype: dtype, non_blocking: bool = False, copy: bool = False, *, "
        "memory_format: memory_format | None = None) -> Tensor",
        "(self, device: device | str | int | None = None, dtype: dtype | None = None, non_blocking: bool = False, "
        "copy: bool = False, *, memory_format: memory_format | None = None) -> Tensor",
        "(self, other: Tensor, non_blocking: bool = False, copy: bool = False, *, "
        "memory_format: memory_format | None = None) -> Tensor",
    ),
    "Tensor.view": (
        "(self, dtype: dtype) -> Tensor", "(self, size: Sequence[int]) -> Tensor", "(self, *size: int) -> Tensor",
    ),
    "Tensor.type": (
        "(self, dtype: None = None, non_blocking: bool = False) -> str",
        "(self, dtype: dtype | str | type[Any], non_blocking: bool = False) -> Tensor",
    ),
}  # fmt: skip


def _signature(text: str) -> Signature:
    """The signature that a text shows."""
    read = ast.parse(f"def form{text}: ...").body[0]
    assert isinstance(read, ast.FunctionDef)
    given, made = read.args, []
    first = len(given.args) - len(given.defaults)
    for arg, kind, default in (
            *((a, Parameter.POSITIONAL_OR_KEYWORD, given.defaults[i - first] if i >= first else None)
              for i, a in enumerate(given.args)),
            *((a, Parameter.VAR_POSITIONAL, None) for a in (given.vararg,) if a is not None),
            *((a, Parameter.KEYWORD_ONLY, d) for a, d in zip(given.kwonlyargs, given.kw_defaults)),
    ):  # fmt: skip
        annotation = "Any" if arg.annotation is None else ast.unparse(arg.annotation)
        value = Parameter.empty if default is None else ast.literal_eval(default)
        made.append(Parameter(arg.arg, kind, default=value, annotation=annotation))
    assert read.returns is not None
    return Signature(made, return_annotation=ast.unparse(read.returns))


OVERLOADS: Final = {
    name: tuple(_signature(text.format(name=name.rpartition(".")[2])) for text in forms)
    for names, forms in _FORMS.items()
    for name in names.split()
}
"""The forms of calls by the name of their function; where a method has others, by its name with that of its class."""
