"""What elementwise ops compute for one element, as expressions: the table that fused kernels are written from.

An expression is Python text over the op's parameters and the functions of :data:`FUNCTIONS`. Nothing evaluates it:
a backend walks its syntax tree and writes it in its own language (:mod:`..kernels.cuda.language` in C++). It holds for
real floating point operands; numbers are rounded to the arithmetic's type, which is float32 for half precision.
``where`` computes both sides. Comparisons give truth values, and so does an op that ends with one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

FUNCTIONS: Final = frozenset({
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "atan2", "cos", "cosh", "erf", "erfc", "exp", "exp2",
    "expm1", "hypot", "log", "log10", "log1p", "log2", "maximum", "minimum", "reciprocal", "sin", "sinh", "sqrt",
    "tan", "tanh", "where",
})  # fmt: skip

ROOT_HALF: Final = math.sqrt(0.5)
DENSITY: Final = 1 / math.sqrt(2 * math.pi)
TANH_SCALE: Final = math.sqrt(2 / math.pi)
TANH_CUBE: Final = 0.044715

_BY_TANH: Final = f"tanh(self * (self * self * {TANH_SCALE * TANH_CUBE!r} + {TANH_SCALE!r}))"
_TANH_SLOPE: Final = f"(self * self * {3 * TANH_SCALE * TANH_CUBE!r} + {TANH_SCALE!r})"
_LOGISTIC: Final = "1 / (1 + exp(-self))"
_GROWN: Final = "exp(minimum(self, 20.0)) * (exp(minimum(self, 20.0)) + 2)"


@dataclass(frozen=True)
class Expression:
    """One element of an op's result.

    Attributes:
        text: Python over the op's parameters.
        when: values of attributes that it holds for; it holds for any value of those that are not named, except that
            a parameter in the text may not be ``None``.
    """

    text: str
    when: Mapping[str, Any] = field(default_factory=dict)


_ALWAYS: Final[dict[str, str]] = {
    # Sums, products, quotients
    "add": "self + other * alpha", "sub": "self - other * alpha", "rsub": "other - self * alpha",
    "mul": "self * other", "neg": "-self", "square": "self * self", "reciprocal": "reciprocal(self)",
    "addcmul": "self + tensor1 * value * tensor2", "addcdiv": "self + tensor1 * value / tensor2",
    # Extremes and selection
    "maximum": "maximum(self, other)", "minimum": "minimum(self, other)", "clamp_min": "maximum(self, min)",
    "clamp_max": "minimum(self, max)", "where": "where(condition, self, other)",
    "masked_fill": "where(mask, value, self)", "abs": "abs(self)",
    # Comparison
    "eq": "self == other", "ne": "self != other", "lt": "self < other", "le": "self <= other", "gt": "self > other",
    "ge": "self >= other",
    # Functions of one number
    "exp": "exp(self)", "exp2": "exp2(self)", "expm1": "expm1(self)", "log": "log(self)", "log2": "log2(self)",
    "log10": "log10(self)", "log1p": "log1p(self)", "sqrt": "sqrt(self)", "rsqrt": "reciprocal(sqrt(self))",
    "sin": "sin(self)", "cos": "cos(self)", "tan": "tan(self)", "asin": "asin(self)", "acos": "acos(self)",
    "atan": "atan(self)", "sinh": "sinh(self)", "cosh": "cosh(self)", "tanh": "tanh(self)", "asinh": "asinh(self)",
    "acosh": "acosh(self)", "atanh": "atanh(self)", "erf": "erf(self)", "erfc": "erfc(self)",
    "sigmoid": f"{_LOGISTIC}", "deg2rad": f"self * {math.pi / 180!r}", "rad2deg": f"self * {180 / math.pi!r}",
    "atan2": "atan2(self, other)", "hypot": "hypot(self, other)",
    # Activations and their gradients
    "relu": "maximum(self, 0)", "relu6": "minimum(maximum(self, 0), 6)",
    "hardtanh": "minimum(maximum(self, min_val), max_val)",
    "threshold": "where(self <= threshold, value, self)",
    "threshold_backward": "where(self <= threshold, 0, grad)",
    "hardtanh_backward": "where(self <= min_val, 0, where(self >= max_val, 0, grad))",
    "leaky_relu": "where(self > 0, self, self * negative_slope)",
    "leaky_relu_backward": "where(self > 0, grad, grad * negative_slope)",
    "elu": "where(self > 0, self, expm1(minimum(self, 0)) * alpha)",
    "silu": "self / (1 + exp(-self))",
    "silu_backward": f"grad * (({_LOGISTIC}) * (self * (1 - {_LOGISTIC}) + 1))",
    "mish": f"self * (({_GROWN}) / ({_GROWN} + 2))",
    "sigmoid_backward": "grad * (output * (1 - output))",
    "tanh_backward": "grad * (1 - output * output)",
    "softplus": "where(self * beta > threshold, self, log1p(exp(self * beta)) / beta)",
    "logsigmoid": "minimum(self, 0) - log1p(exp(-abs(self)))",
    "softsign": "self / (abs(self) + 1)",
    "tanhshrink": "self - tanh(self)",
    "hardsigmoid": "minimum(maximum(self + 3, 0), 6) / 6",
    "hardswish": "self * minimum(maximum(self + 3, 0), 6) / 6",
}  # fmt: skip

EXPRESSIONS: Final[dict[str, tuple[Expression, ...]]] = {
    **{name: (Expression(text),) for name, text in _ALWAYS.items()},
    "div": (Expression("self / other", {"rounding_mode": None}),),
    "clamp": (
        Expression("minimum(self, max)", {"min": None}),
        Expression("maximum(self, min)", {"max": None}),
        Expression("minimum(maximum(self, min), max)"),
    ),
    "gelu": (
        Expression(f"0.5 * (1 + {_BY_TANH}) * self", {"approximate": "tanh"}),
        Expression(f"(erf(self * {ROOT_HALF!r}) + 1) * 0.5 * self"),
    ),
    "gelu_backward": (
        Expression(
            f"grad * (0.5 * (1 + {_BY_TANH}) + 0.5 * self * (1 - {_BY_TANH} * {_BY_TANH}) * {_TANH_SLOPE})",
            {"approximate": "tanh"},
        ),
        Expression(f"((erf(self * {ROOT_HALF!r}) + 1) * 0.5 + exp(self * self * -0.5) * self * {DENSITY!r}) * grad"),
    ),
}
"""By op, the expressions in the order in which they are tried."""


def expression_of(name: str, values: Mapping[str, Any]) -> Expression | None:
    """The expression of an op with these arguments; ``None`` when no expression holds.

    Args:
        values: by parameter, an array, a number, or an attribute's value.
    """
    for found in EXPRESSIONS.get(name, ()):
        if all(_is(values.get(key), wanted) for key, wanted in found.when.items()):
            return found
    return None


def _is(value: str | None, wanted: str | None) -> bool:
    return value is None if wanted is None else isinstance(value, type(wanted)) and bool(value == wanted)
