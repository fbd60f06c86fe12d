"""Special functions, as ``torch.special`` names them."""

from __future__ import annotations

from ._core.surface import methods
from ._core.surface.namespaces import offered_in
from ._core.surface.unsupported import explaining as _explaining

_ELSEWHERE = {
    "digamma": "digamma", "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "exp2": "exp2", "expit": "sigmoid",
    "expm1": "expm1", "gammainc": "igamma", "gammaincc": "igammac", "gammaln": "lgamma", "log1p": "log1p",
    "log_softmax": "log_softmax", "logit": "logit", "logsumexp": "logsumexp", "multigammaln": "mvlgamma",
    "polygamma": "polygamma", "psi": "digamma", "round": "round", "sinc": "sinc", "softmax": "softmax",
    "xlogy": "xlogy",
}  # fmt: skip
"""What this namespace calls the functions that ``gradwire`` has itself."""

for _name, _function in offered_in("special").items():
    globals()[_name] = _function
for _name, _original in _ELSEWHERE.items():
    globals()[_name] = methods.FUNCTIONS[_original]
methods.name_after(__name__, globals())


__getattr__ = _explaining(__name__)

__all__ = sorted({*offered_in("special"), *_ELSEWHERE})
