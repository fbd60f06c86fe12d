"""A vision transformer of two layers learns classes of images, which an image processor prepares."""

import numpy as np
from numpy_numbers import DEVICE, fill, integers, norms_of_gradients, tell, train
from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessor

config = ViTConfig(
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=48,
    image_size=32,
    patch_size=8,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
    num_labels=5,
)
pictures = list(np.random.default_rng(0).integers(256, size=(4, 40, 40, 3), dtype=np.uint8))
images = ViTImageProcessor(size={"height": 32, "width": 32})(pictures, return_tensors="pt")["pixel_values"].to(DEVICE)
model = fill(ViTForImageClassification(config))
labels = integers(5, 4)
losses = train(model, lambda: model(pixel_values=images, labels=labels).loss)
gradients = norms_of_gradients(model)
found = model.eval()(pixel_values=images, output_attentions=False)
tell(images=images, losses=losses, gradients=gradients, logits=found.logits)
