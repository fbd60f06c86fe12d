"""A trainer and an evaluator, with handlers: metrics, schedule, early stopping, checkpoints, averages."""

import tempfile

import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import Checkpoint, DiskSaver, EarlyStopping, LinearCyclicalScheduler, TerminateOnNan
from ignite.metrics import Accuracy, ConfusionMatrix, Loss, Precision, RunningAverage
from numpy_numbers import DEVICE, fill, integers, normal, tell
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

model = fill(nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()
loader = DataLoader(TensorDataset(normal(16, 6, device="cpu"), integers(3, 16, device="cpu")), batch_size=4)
trainer = create_supervised_trainer(model, optimizer, criterion, device=DEVICE)
evaluator = create_supervised_evaluator(
    model,
    {
        "accuracy": Accuracy(),
        "loss": Loss(criterion),
        "precision": Precision(average=True),
        "confusion": ConfusionMatrix(3),
    },
    device=DEVICE,
)
RunningAverage(output_transform=lambda loss: loss).attach(trainer, "average")
trainer.add_event_handler(Events.ITERATION_STARTED, LinearCyclicalScheduler(optimizer, "lr", 0.2, 0.05, 8))
trainer.add_event_handler(Events.ITERATION_COMPLETED, TerminateOnNan())
evaluator.add_event_handler(Events.COMPLETED, EarlyStopping(2, lambda e: -e.state.metrics["loss"], trainer))
losses, evaluated = [], []
with tempfile.TemporaryDirectory() as folder:
    keeping = Checkpoint({"model": model, "optimizer": optimizer}, DiskSaver(folder, require_empty=False), n_saved=1)
    trainer.add_event_handler(Events.EPOCH_COMPLETED, keeping)

    @trainer.on(Events.ITERATION_COMPLETED)
    def note(engine):
        losses.append((engine.state.output, engine.state.metrics.get("average")))

    @trainer.on(Events.EPOCH_COMPLETED)
    def evaluate(engine):
        evaluated.append(dict(evaluator.run(loader).metrics))

    trainer.run(loader, max_epochs=3)
    kept = torch.load(keeping.last_checkpoint)
    other = fill(nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3)))
    Checkpoint.load_objects({"model": other}, kept)
tell(losses=losses, evaluated=evaluated, logits=other(normal(2, 6, seed=1)))
