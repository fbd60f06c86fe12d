"""A CLIP of two small transformers learns pairs of images and texts."""

from numpy_numbers import DEVICE, fill, norms_of_gradients, tell, train, uniform
from open_clip import SimpleTokenizer
from open_clip.loss import ClipLoss
from open_clip.model import CLIP

model = CLIP(
    embed_dim=16,
    vision_cfg={"layers": 2, "width": 32, "head_width": 16, "patch_size": 8, "image_size": 32},
    text_cfg={"context_length": 16, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2},
)
fill(model)
model.logit_scale.data.fill_(2.0)
texts = SimpleTokenizer(context_length=16)(["a photo of a cat", "two dogs", "the sea", "a red car"]).to(DEVICE)
images = uniform(4, 3, 32, 32)
criterion = ClipLoss()


def loss():
    seen, read, scale = model(images, texts)
    return criterion(seen, read, scale)


losses = train(model, loss)
gradients = norms_of_gradients(model)
model.eval()
tell(
    texts=texts,
    losses=losses,
    gradients=gradients,
    seen=model.encode_image(images, normalize=True),
    read=model.encode_text(texts, normalize=True),
)
