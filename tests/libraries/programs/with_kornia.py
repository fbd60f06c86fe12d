"""Images through filters, colours and warps; the rotation of one image is found by gradient descent."""

import kornia
import torch
from numpy_numbers import DEVICE, tell, uniform
from torch.nn import functional as F

torch.set_default_device(DEVICE)
image = F.interpolate(uniform(1, 3, 6, 6), (24, 24), mode="bilinear", align_corners=False)
blurred = kornia.filters.gaussian_blur2d(image, (5, 5), (1.5, 1.5))
center, scale = torch.tensor([[11.5, 11.5]]), torch.ones(1, 2)


def rotated(angle):
    matrix = kornia.geometry.transform.get_rotation_matrix2d(center, angle, scale)
    return kornia.geometry.transform.warp_affine(blurred, matrix, (24, 24))


wanted = rotated(torch.tensor([12.0])).detach()
# Not from 0: there each point falls on a pixel, where the last bit decides which side's slope is the gradient.
angle = torch.tensor([1.0], requires_grad=True)
optimizer = torch.optim.SGD([angle], lr=300.0)
losses = []
for _ in range(5):
    optimizer.zero_grad()
    loss = F.mse_loss(rotated(angle), wanted)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
corners = torch.tensor([[[0.0, 0.0], [23.0, 0.0], [23.0, 23.0], [0.0, 23.0]]])
homography = kornia.geometry.get_perspective_transform(corners, corners + torch.tensor([[1.0, 2.0]]))
fixed = kornia.augmentation.RandomHorizontalFlip(p=1.0)
gray = kornia.color.rgb_to_grayscale(image)
tell(
    losses=losses,
    angle=angle,
    blurred=blurred,
    sobel=kornia.filters.sobel(image),
    hsv=kornia.color.rgb_to_hsv(image),
    lab=kornia.color.rgb_to_lab(image),
    canny=kornia.filters.canny(gray)[0],
    flipped=fixed(image),
    warped=kornia.geometry.warp_perspective(image, homography, (24, 24)),
    homography=homography,
    ssim=kornia.losses.ssim_loss(image, blurred, 5),
    dilated=kornia.morphology.dilation(gray, torch.ones(3, 3)),
    harris=kornia.feature.harris_response(gray),
    median=kornia.filters.median_blur(image, (3, 3)),
    turn=kornia.geometry.conversions.axis_angle_to_rotation_matrix(torch.tensor([[0.1, 0.2, 0.3]])),
)
