from __future__ import print_function

import argparse

import numpy as np
import torch
from digits import load_digits
from model import Net

parser = argparse.ArgumentParser(description="super resolution of one digit")
parser.add_argument("--input_image", type=int, required=True, help="number of the digit to use")
parser.add_argument("--model", type=str, required=True, help="model file to use")
parser.add_argument("--output_filename", type=str, help="where to save the output image")
parser.add_argument("--accel", action="store_true", help="Enables Accelerated inference")
opt = parser.parse_args()

print(opt)

if opt.accel and torch.accelerator.is_available():
    device = torch.accelerator.current_accelerator()
else:
    device = torch.device("cpu")

img = load_digits()[0][opt.input_image] / 16.0

torch.serialization.add_safe_globals([Net])
model = torch.load(opt.model, map_location=device, weights_only=False)
model = model.to(device)
input = torch.from_numpy(img).float().view(1, -1, img.shape[0], img.shape[1]).to(device)

out = model(input).cpu()
out_img_y = out[0].detach().numpy()
out_img_y *= 255.0
out_img_y = out_img_y.clip(0, 255)
np.save(opt.output_filename, np.uint8(out_img_y[0]))
print("output image saved to ", opt.output_filename, "of size", out_img_y.shape, "with mean", out_img_y.mean())
