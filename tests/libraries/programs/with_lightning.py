"""A LightningModule, trained and validated by a Trainer with clipping, a schedule, a callback and checkpoints."""

import os
import tempfile
import warnings

import lightning as L
import torch
from lightning.pytorch.accelerators import Accelerator
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from lightning.pytorch.strategies import SingleDeviceStrategy
from numpy_numbers import DEVICE, fill, integers, normal, tell
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")


class OneDevice(Accelerator):
    """A device that Lightning does not know."""

    def setup_device(self, device):
        assert device.type == DEVICE

    def teardown(self):
        pass

    @staticmethod
    def parse_devices(devices):
        return devices

    @staticmethod
    def get_parallel_devices(devices):
        return [torch.device(DEVICE)]

    @staticmethod
    def auto_device_count():
        return 1

    @staticmethod
    def is_available():
        return True

    @staticmethod
    def name():
        return DEVICE


class Classifier(L.LightningModule):
    def __init__(self, width=16):
        super().__init__()
        self.save_hyperparameters()
        self.net = fill(nn.Sequential(nn.Linear(6, width), nn.Tanh(), nn.Linear(width, 3)), device="cpu")
        self.losses = []

    def forward(self, values):
        return self.net(values)

    def training_step(self, batch, index):
        loss = F.cross_entropy(self(batch[0]), batch[1])
        self.log("train_loss", loss)
        self.losses.append(loss.item())
        return loss

    def validation_step(self, batch, index):
        self.log("val_loss", F.cross_entropy(self(batch[0]), batch[1]))

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.2, momentum=0.9)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)}


L.seed_everything(0, verbose=False)
loader = DataLoader(TensorDataset(normal(16, 6, device="cpu"), integers(3, 16, device="cpu")), batch_size=4)
with tempfile.TemporaryDirectory() as folder:
    keeping = ModelCheckpoint(folder, monitor="val_loss")
    trainer = L.Trainer(
        max_epochs=3,
        strategy=SingleDeviceStrategy(torch.device(DEVICE), OneDevice()),
        logger=False,
        enable_progress_bar=False,
        gradient_clip_val=1.0,
        enable_model_summary=False,
        callbacks=[keeping, EarlyStopping("val_loss")],
        default_root_dir=folder,
    )
    model = Classifier()
    trainer.fit(model, loader, loader)
    best = Classifier.load_from_checkpoint(keeping.best_model_path)
    validated = trainer.validate(best, loader, verbose=False)[0]["val_loss"]
    name = os.path.basename(keeping.best_model_path)
    predicted = torch.cat(trainer.predict(best, DataLoader(normal(8, 6, seed=1, device="cpu"), batch_size=4)))
tell(
    losses=model.losses,
    best=keeping.best_model_score,
    validated=validated,
    name=name,
    predicted=predicted,
    steps=trainer.global_step,
)
