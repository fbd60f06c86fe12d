from collections import namedtuple

import torch
from torch import nn


def features():
    """The layers of a small network in VGG's shape, with the same weights each time."""
    with torch.random.fork_rng():
        torch.manual_seed(16)
        layers = []
        for wide, narrow in ((8, 3), (8, 8), (16, 8), (16, 16)):
            layers += [nn.Conv2d(narrow, wide, 3, padding=1), nn.ReLU(inplace=False)]
            if len(layers) == 4:
                layers += [nn.MaxPool2d(2, 2)]
        return nn.Sequential(*layers)


class Vgg(torch.nn.Module):
    def __init__(self, requires_grad=False):
        super(Vgg, self).__init__()
        vgg_pretrained_features = features()
        self.slice1 = torch.nn.Sequential()
        self.slice2 = torch.nn.Sequential()
        for x in range(4):
            self.slice1.add_module(str(x), vgg_pretrained_features[x])
        for x in range(4, 9):
            self.slice2.add_module(str(x), vgg_pretrained_features[x])
        if not requires_grad:
            for param in self.parameters():
                param.requires_grad = False

    def forward(self, X):
        h = self.slice1(X)
        h_relu1 = h
        h = self.slice2(h)
        h_relu2 = h
        vgg_outputs = namedtuple("VggOutputs", ["relu1", "relu2"])
        out = vgg_outputs(h_relu1, h_relu2)
        return out
