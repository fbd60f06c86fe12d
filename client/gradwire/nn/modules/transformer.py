"""``torch.nn.modules.transformer``: the transformer."""

from ..transformer import (
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
    _generate_square_subsequent_mask,
    _get_activation_fn,
    _get_clones,
)

__all__ = [
    "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer",
    "_generate_square_subsequent_mask", "_get_activation_fn", "_get_clones",
]  # fmt: skip
