"""A U-Net learns to remove noise; schedulers turn noise into images; an autoencoder learns; weights on disk."""

import tempfile

import torch
from diffusers import AutoencoderKL, DDIMScheduler, DDPMScheduler, EulerDiscreteScheduler, UNet2DModel
from numpy_numbers import DEVICE, fill, normal, norms_of_gradients, tell, train
from torch.nn import functional as F

model = fill(
    UNet2DModel(
        sample_size=8,
        in_channels=1,
        out_channels=1,
        layers_per_block=1,
        block_out_channels=(8, 16),
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        norm_num_groups=4,
        attention_head_dim=4,
    )
)
schedule = DDPMScheduler(num_train_timesteps=50)
images, noise, times = normal(3, 1, 8, 8), normal(3, 1, 8, 8, seed=1), torch.tensor([3, 20, 45], device=DEVICE)
noisy = schedule.add_noise(images, noise, times)
losses = train(model, lambda: F.mse_loss(model(noisy, times).sample, noise), lr=0.02)
gradients = norms_of_gradients(model)
model.eval()
drawn = {}
for kind in (DDIMScheduler, EulerDiscreteScheduler):
    sampler = kind(num_train_timesteps=50)
    sampler.set_timesteps(4, device=DEVICE)
    sample = normal(2, 1, 8, 8, seed=2) * sampler.init_noise_sigma
    with torch.no_grad():
        for time in sampler.timesteps:
            guess = model(sampler.scale_model_input(sample, time), time).sample
            sample = sampler.step(guess, time, sample).prev_sample
    drawn[kind.__name__] = sample
vae = fill(AutoencoderKL(in_channels=1, out_channels=1, block_out_channels=(8,), norm_num_groups=4, latent_channels=2))
further = train(vae, lambda: F.mse_loss(vae(images).sample, images), lr=0.01)
with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    loaded = UNet2DModel.from_pretrained(folder).to(DEVICE)
tell(losses=losses, gradients=gradients, drawn=drawn, further=further, loaded=loaded(noisy, times).sample)
