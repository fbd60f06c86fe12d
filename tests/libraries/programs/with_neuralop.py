"""A Fourier neural operator learns to smooth functions, with losses of functions."""

from neuralop.losses import H1Loss, LpLoss
from neuralop.models import FNO
from numpy_numbers import fill, normal, norms_of_gradients, tell, train

model = fill(FNO(n_modes=(4, 4), in_channels=1, out_channels=1, hidden_channels=8, n_layers=2), scale=0.5)
x = normal(3, 1, 12, 12)
y = x.cumsum(-1) / 5
distance, smooth = LpLoss(d=2, p=2), H1Loss(d=2)
losses = train(model, lambda: distance(model(x), y), lr=0.01)
gradients = norms_of_gradients(model)
further = train(model, lambda: smooth(model(x), y), lr=0.001)
tell(losses=losses, gradients=gradients, further=further, finer=model(normal(1, 1, 16, 16, seed=1)))
