"""Summaries of a convolutional and a recurrent network, which then learn."""

from numpy_numbers import DEVICE, fill, integers, normal, tell, train, uniform
from torch import nn
from torch.nn import functional as F
from torchinfo import summary

net = fill(
    nn.Sequential(
        nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(24, 4)
    )
)
found = summary(
    net,
    input_size=(2, 3, 12, 12),
    depth=2,
    verbose=0,
    device=DEVICE,
    col_names=("input_size", "output_size", "num_params", "kernel_size", "mult_adds"),
)
recurrent = fill(nn.LSTM(5, 7, num_layers=2, batch_first=True))
other = summary(recurrent, input_data=normal(2, 4, 5), verbose=0)
images, labels = uniform(4, 3, 12, 12), integers(4, 4)
losses = train(net, lambda: F.cross_entropy(net(images), labels))
further = train(recurrent, lambda: recurrent(normal(2, 4, 5))[0].square().mean())
tell(
    table=str(found),
    other=str(other),
    parameters=found.total_params,
    mult_adds=found.total_mult_adds,
    bytes=found.total_output_bytes,
    losses=losses,
    further=further,
)
