"""``torch.nn.modules.adaptive``: the adaptive softmax."""

from ..adaptive import AdaptiveLogSoftmaxWithLoss, _ASMoutput

__all__ = [
    "AdaptiveLogSoftmaxWithLoss", "_ASMoutput",
]  # fmt: skip
