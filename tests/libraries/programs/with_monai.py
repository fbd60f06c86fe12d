"""A U-Net segments volumes that transforms prepare; losses, a metric, windows that slide."""

import numpy as np
import torch
from monai.data import DataLoader, Dataset
from monai.inferers import sliding_window_inference
from monai.losses import DiceCELoss, DiceLoss
from monai.metrics import DiceMetric
from monai.networks.nets import UNet
from monai.transforms import AsDiscrete, Compose, EnsureChannelFirstd, Resized, ScaleIntensityd
from numpy_numbers import DEVICE, fill, tell

random = np.random.default_rng(0)
cases = [
    {
        "image": random.random((10, 10, 10), dtype=np.float32),
        "label": (random.random((10, 10, 10)) > 0.5).astype(np.float32),
    }
    for _ in range(2)
]
prepare = Compose(
    [
        EnsureChannelFirstd(["image", "label"], channel_dim="no_channel"),
        ScaleIntensityd("image"),
        Resized(["image", "label"], (8, 8, 8), mode=("trilinear", "nearest")),
    ]
)
loader = DataLoader(Dataset(cases, prepare), batch_size=2)
model = fill(UNet(spatial_dims=3, in_channels=1, out_channels=2, channels=(4, 8), strides=(2,), num_res_units=1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
criterion, dice = DiceCELoss(to_onehot_y=True, softmax=True), DiceLoss(to_onehot_y=True, softmax=True)
losses, further = [], []
for _ in range(3):
    for batch in loader:
        optimizer.zero_grad()
        images, labels = batch["image"].to(DEVICE), batch["label"].to(DEVICE)
        logits = model(images)
        loss = criterion(logits, labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        further.append(dice(logits, labels).item())
model.eval()
with torch.no_grad():
    whole = sliding_window_inference(images, (8, 8, 4), 2, model, overlap=0.25)
metric = DiceMetric(include_background=True)
metric(
    torch.stack([AsDiscrete(argmax=True, to_onehot=2)(one) for one in whole.as_tensor()]),
    torch.stack([AsDiscrete(to_onehot=2)(one) for one in labels.as_tensor()]),
)
tell(image=batch["image"].as_tensor(), losses=losses, further=further, whole=whole.as_tensor(), dice=metric.aggregate())
