"""A small vision transformer and a ConvNeXt, with timm's optimizer, schedule and moving average of weights."""

import timm
from numpy_numbers import fill, integers, tell, train, uniform
from timm.loss import LabelSmoothingCrossEntropy
from timm.models.vision_transformer import VisionTransformer
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import ModelEmaV2

images, labels = uniform(4, 3, 32, 32), integers(5, 4)
model = fill(VisionTransformer(img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=2, num_classes=5))
optimizer = create_optimizer_v2(model, "sgd", lr=0.05, weight_decay=0.01, momentum=0.9)
schedule = CosineLRScheduler(optimizer, t_initial=4, warmup_t=1, warmup_lr_init=0.01)
average = ModelEmaV2(model, decay=0.5)
criterion = LabelSmoothingCrossEntropy(0.1)
losses = []
for step in range(4):
    schedule.step(step)
    optimizer.zero_grad()
    loss = criterion(model(images), labels)
    loss.backward()
    optimizer.step()
    average.update(model)
    losses.append(loss.item())

convnext = fill(timm.create_model("convnext_atto", num_classes=5, depths=(1, 1, 1, 1), dims=(8, 16, 16, 32)))
further = train(convnext, lambda: criterion(convnext(images), labels), lr=0.01)
tell(
    losses=losses,
    average=average.module.eval()(images),
    rate=optimizer.param_groups[0]["lr"],
    features=model.forward_features(images),
    convnext=further,
)
