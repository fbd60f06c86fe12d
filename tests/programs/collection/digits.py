"""What stands here for torchvision's data sets and transforms: scikit-learn's handwritten digits, 8 x 8."""

import importlib.util
import os

import numpy as np
import torch
from torch.utils.data import Dataset


def load_digits():
    """The images and their classes, of the file that scikit-learn brings, without the time that its import takes."""
    folder = importlib.util.find_spec("sklearn").submodule_search_locations[0]
    table = np.loadtxt(os.path.join(folder, "datasets", "data", "digits.csv.gz"), delimiter=",")
    return table[:, :64].reshape(-1, 8, 8), table[:, 64].astype(np.int64)


class Digits(Dataset):
    def __init__(self, train=True, transform=None, count=None):
        images, targets = load_digits()
        part = slice(0, 1437) if train else slice(1437, None)
        self.data = images[part][:count]
        self.targets = torch.tensor(targets[part][:count])
        self.transform = transform

    def __getitem__(self, index):
        image, target = self.data[index], int(self.targets[index])
        if self.transform is not None:
            image = self.transform(image)
        return image, target

    def __len__(self):
        return len(self.data)


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, image):
        for transform in self.transforms:
            image = transform(image)
        return image


class ToTensor:
    def __call__(self, image):
        return torch.from_numpy(image.astype(np.float32) / 16.0).unsqueeze(0)


class Normalize:
    def __init__(self, mean, std):
        self.mean, self.std = mean, std

    def __call__(self, image):
        mean = torch.as_tensor(self.mean, dtype=image.dtype).view(-1, 1, 1)
        std = torch.as_tensor(self.std, dtype=image.dtype).view(-1, 1, 1)
        return image.clone().sub_(mean).div_(std)


class Lambda:
    def __init__(self, function):
        self.function = function

    def __call__(self, image):
        return self.function(image)
