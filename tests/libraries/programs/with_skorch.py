"""A classifier and a regressor for scikit-learn: fits, a pipeline, a search, pickles, parameters on disk."""

import pickle
import tempfile

import numpy as np
import torch
from numpy_numbers import DEVICE, fill, tell
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier, NeuralNetRegressor
from skorch.callbacks import EpochScoring, LRScheduler
from torch import nn


class Net(nn.Module):
    def __init__(self, width=8, outputs=3):
        super().__init__()
        self.layers = fill(nn.Sequential(nn.Linear(6, width), nn.Tanh(), nn.Linear(width, outputs)), device="cpu")

    def forward(self, values):
        return self.layers(values)


random = np.random.default_rng(0)
values, labels = random.normal(size=(24, 6)).astype(np.float32), random.integers(3, size=24)
settings = {
    "lr": 0.2,
    "batch_size": 8,
    "iterator_train__shuffle": False,
    "verbose": 0,
    "optimizer": torch.optim.SGD,
    "device": DEVICE,
}
net = NeuralNetClassifier(
    Net,
    criterion=nn.CrossEntropyLoss,
    max_epochs=4,
    train_split=None,
    callbacks=[LRScheduler("StepLR", step_size=2), EpochScoring("accuracy", on_train=True)],
    **settings,
)
net.fit(values, labels)
losses = net.history[:, "train_loss"]
loaded = pickle.loads(pickle.dumps(net))  # noqa: S301  (its own bytes)
with tempfile.TemporaryDirectory() as folder:
    net.save_params(f_params=f"{folder}/net.pt", f_optimizer=f"{folder}/optimizer.pt", f_history=f"{folder}/log.json")
    other = NeuralNetClassifier(Net, criterion=nn.CrossEntropyLoss, max_epochs=1, train_split=None, **settings)
    other.initialize()
    other.load_params(f_params=f"{folder}/net.pt", f_optimizer=f"{folder}/optimizer.pt")
loaded.partial_fit(values, labels)
search = GridSearchCV(
    NeuralNetClassifier(Net, criterion=nn.CrossEntropyLoss, max_epochs=2, train_split=None, **settings),
    {"lr": [0.05, 0.5], "module__width": [4, 8]},
    cv=2,
    scoring="accuracy",
).fit(values, labels)
regressor = NeuralNetRegressor(Net(outputs=1), max_epochs=3, train_split=None, **settings)
pipeline = make_pipeline(StandardScaler(), regressor).fit(values, values[:, :1])
tell(
    losses=losses,
    accuracy=net.history[:, "accuracy"],
    probabilities=net.predict_proba(values),
    rate=net.history[-1, "event_lr"],
    loaded=loaded.history[-1, "train_loss"],
    other=other.predict(values),
    search=search.cv_results_["mean_test_score"],
    best={name: float(value) for name, value in search.best_params_.items()},
    regression=pipeline.predict(values),
)
