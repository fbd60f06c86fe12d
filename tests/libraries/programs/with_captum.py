"""A trained network is explained: by gradients, by what is left out, by layers and by neurons."""

from captum.attr import (
    LRP,
    DeepLift,
    FeatureAblation,
    GuidedBackprop,
    InputXGradient,
    IntegratedGradients,
    LayerConductance,
    LayerGradCam,
    NeuronIntegratedGradients,
    Occlusion,
    Saliency,
)
from numpy_numbers import fill, integers, tell, train, uniform
from torch import nn
from torch.nn import functional as F

model = fill(
    nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 8), nn.ReLU(), nn.Linear(8, 3)
    )
)
images, labels = uniform(4, 1, 8, 8), integers(3, 4)
losses = train(model, lambda: F.cross_entropy(model(images), labels), steps=5, lr=0.1)
model.eval()
integrated, delta = IntegratedGradients(model).attribute(
    images, target=labels, n_steps=20, return_convergence_delta=True
)
found = {
    "integrated": integrated,
    "delta": delta.abs() < 0.05,
    "saliency": Saliency(model).attribute(images, target=labels),
    "product": InputXGradient(model).attribute(images, target=labels),
    "deeplift": DeepLift(model).attribute(images, target=labels),
    "guided": GuidedBackprop(model).attribute(images, target=labels),
    "relevance": LRP(model[4:]).attribute(model[:4](images), target=labels),
    "ablation": FeatureAblation(model).attribute(images[:1], target=labels[:1]),
    "occlusion": Occlusion(model).attribute(images, target=labels, sliding_window_shapes=(1, 4, 4), strides=(1, 2, 2)),
    "conductance": LayerConductance(model, model[4]).attribute(images, target=labels, n_steps=10),
    "cam": LayerGradCam(model, model[0]).attribute(images, target=labels),
    "neuron": NeuronIntegratedGradients(model, model[4]).attribute(images, neuron_selector=2, n_steps=10),
}
tell(losses=losses, **found)
