import numpy as np
import torch


def load_image(number, size=24):
    """A picture made of waves, as an array of 8-bit colours, height first."""
    y, x = np.mgrid[0:size, 0:size] / size
    waves = [np.sin((number + 2) * (x * (c + 1) + y * (number % 3)) * 3) for c in range(3)]
    return np.uint8((np.stack(waves, -1) + 1) * 127.5)


class Pictures(torch.utils.data.Dataset):
    def __init__(self, count, transform=None):
        self.count = count
        self.transform = transform

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        image = load_image(index)
        return self.transform(image) if self.transform is not None else image, 0


def to_tensor(image):
    return torch.from_numpy(image.transpose(2, 0, 1)).float()


def gram_matrix(y):
    (b, ch, h, w) = y.size()
    features = y.view(b, ch, w * h)
    features_t = features.transpose(1, 2)
    gram = features.bmm(features_t) / (ch * h * w)
    return gram


def normalize_batch(batch):
    mean = batch.new_tensor([0.485, 0.456, 0.406]).view(-1, 1, 1)
    std = batch.new_tensor([0.229, 0.224, 0.225]).view(-1, 1, 1)
    batch = batch.div_(255.0)
    return (batch - mean) / std
