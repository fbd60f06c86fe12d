"""``torch.nn.functional``: what modules compute, as functions.

Most of it is the op table's, offered as it is declared there. The modules of this package define the rest: functions
whose arguments in PyTorch are others than the op's, and functions made of several ops.
"""

from typing import TYPE_CHECKING, Any

from . import generated as _generated

globals().update(_generated.functions())

from .layers import (  # noqa: E402  (by hand goes before generated)
    cosine_similarity,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    embedding,
    glu,
    gumbel_softmax,
    log_softmax,
    normalize,
    one_hot,
    pairwise_distance,
    softmax,
    softmin,
)
from .losses import (  # noqa: E402
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    nll_loss,
    refuse_legacy_reduction,
    smooth_l1_loss,
)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...  # what the table offers
