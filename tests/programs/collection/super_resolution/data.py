import torch
import torch.nn.functional as F
import torch.utils.data as data
from digits import load_digits


class DigitsOfTwoSizes(data.Dataset):
    """Pairs of a digit whose size is reduced, and the digit."""

    def __init__(self, images, upscale_factor):
        super(DigitsOfTwoSizes, self).__init__()
        self.images = torch.from_numpy(images / 16.0).float().unsqueeze(1)
        self.upscale_factor = upscale_factor

    def __getitem__(self, index):
        target = self.images[index]
        input = F.avg_pool2d(target, self.upscale_factor)
        return input, target

    def __len__(self):
        return len(self.images)


def get_training_set(upscale_factor):
    return DigitsOfTwoSizes(load_digits()[0][:256], upscale_factor)


def get_test_set(upscale_factor):
    return DigitsOfTwoSizes(load_digits()[0][-64:], upscale_factor)
