# Derived by tools/stubs.py from the objects that are there at run time: run `make derive`.

from gradwire.nn.transformer import Transformer as Transformer, TransformerDecoder as TransformerDecoder, TransformerDecoderLayer as TransformerDecoderLayer, TransformerEncoder as TransformerEncoder, TransformerEncoderLayer as TransformerEncoderLayer, _generate_square_subsequent_mask as _generate_square_subsequent_mask, _get_activation_fn as _get_activation_fn, _get_clones as _get_clones

