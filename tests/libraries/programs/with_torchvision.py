"""A ResNet-18 on images that transforms prepare; features of a layer; boxes and focal loss."""

import torch
import torchvision
from numpy_numbers import fill, integers, normal, norms_of_gradients, tell, train, uniform
from torch.nn import functional as F
from torchvision.models.feature_extraction import create_feature_extractor
from torchvision.ops import box_iou, generalized_box_iou_loss, sigmoid_focal_loss
from torchvision.transforms import v2

prepare = v2.Compose([v2.Resize((48, 48), antialias=True), v2.CenterCrop(40), v2.Normalize([0.5] * 3, [0.25] * 3)])
model = fill(torchvision.models.resnet18(num_classes=5))
images, labels = prepare(uniform(4, 3, 56, 56)), integers(5, 4)
losses = train(model, lambda: F.cross_entropy(model(images), labels), lr=0.01)
gradients = norms_of_gradients(model)

model.eval()
features = create_feature_extractor(model, {"layer2.1.relu_1": "middle", "avgpool": "last"})(images)
corners = uniform(6, 4, seed=1)
boxes = torch.cat([corners[:, :2], corners[:, :2] + corners[:, 2:] + 0.1], 1).requires_grad_()
overlap = box_iou(boxes[:3], boxes[3:])
fit = generalized_box_iou_loss(boxes[:3], boxes[3:], reduction="sum")
fit.backward()
focal = sigmoid_focal_loss(normal(4, 5), F.one_hot(labels, 5).float(), reduction="mean")
grid = torchvision.utils.make_grid(images, nrow=2)
tell(
    losses=losses,
    gradients=gradients,
    images=images,
    middle=features["middle"],
    last=features["last"],
    overlap=overlap,
    fit=fit,
    grad=boxes.grad,
    focal=focal,
    grid=grid,
)
