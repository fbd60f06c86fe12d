"""A U-Net learns to remove noise from images; a step back; the mean of the posterior."""

import torch
from denoising_diffusion_pytorch import GaussianDiffusion, Unet
from numpy_numbers import DEVICE, fill, normal, norms_of_gradients, tell, train, uniform

model = fill(Unet(dim=8, dim_mults=(1, 2), channels=1, flash_attn=False, attn_dim_head=8, attn_heads=2))
diffusion = GaussianDiffusion(model, image_size=8, timesteps=20, sampling_timesteps=4, objective="pred_v").to(DEVICE)
images, noise, times = uniform(3, 1, 8, 8), normal(3, 1, 8, 8, seed=1), torch.tensor([1, 8, 17], device=DEVICE)
losses = train(diffusion, lambda: diffusion.p_losses(diffusion.normalize(images), times, noise=noise), lr=0.01)
gradients = norms_of_gradients(diffusion)
diffusion.eval()
noisy = diffusion.q_sample(images, times, noise)
mean, variance, _, start = diffusion.p_mean_variance(noisy, times, clip_denoised=True)
samples = diffusion.sample(batch_size=2)
tell(
    losses=losses,
    gradients=gradients,
    noisy=noisy,
    mean=mean,
    variance=variance,
    start=start,
    samples=list(samples.shape),
    within=bool(((samples >= 0) & (samples <= 1)).all()),
)
