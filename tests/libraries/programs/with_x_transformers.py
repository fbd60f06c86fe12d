"""A decoder with rotary positions and gated layers learns sequences; it continues one; an encoder reads images."""

from numpy_numbers import fill, integers, norms_of_gradients, tell, train, uniform
from torch.nn import functional as F
from x_transformers import AutoregressiveWrapper, Decoder, Encoder, TransformerWrapper, ViTransformerWrapper

decoder = TransformerWrapper(
    num_tokens=40,
    max_seq_len=32,
    attn_layers=Decoder(
        dim=32, depth=2, heads=2, attn_dim_head=16, rotary_pos_emb=True, ff_swish=True, ff_glu=True, use_rmsnorm=True
    ),
)
model = fill(AutoregressiveWrapper(decoder))
tokens = integers(40, 3, 12)
losses = train(model, lambda: model(tokens))
gradients = norms_of_gradients(model)
model.eval()
continued = model.generate(tokens[:1, :4], 6, temperature=0.0)
images = fill(
    ViTransformerWrapper(
        image_size=16, patch_size=4, num_classes=3, attn_layers=Encoder(dim=32, depth=1, heads=2, attn_dim_head=16)
    )
)
pictures, labels = uniform(4, 3, 16, 16), integers(3, 4)
further = train(images, lambda: F.cross_entropy(images(pictures), labels))
tell(losses=losses, gradients=gradients, logits=decoder(tokens), continued=continued, further=further)
