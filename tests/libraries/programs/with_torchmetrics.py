"""Metrics of classification, regression, images and retrieval, beside the training of a classifier."""

import torch
from numpy_numbers import DEVICE, fill, integers, normal, tell, uniform
from torch import nn
from torch.nn import functional as F
from torchmetrics import MeanMetric, MetricCollection
from torchmetrics.classification import (
    BinaryAUROC,
    MulticlassAccuracy,
    MulticlassCalibrationError,
    MulticlassConfusionMatrix,
    MulticlassF1Score,
)
from torchmetrics.functional import pairwise_cosine_similarity
from torchmetrics.image import PeakSignalNoiseRatio, StructuralSimilarityIndexMeasure
from torchmetrics.regression import MeanSquaredError, PearsonCorrCoef, R2Score, SpearmanCorrCoef
from torchmetrics.retrieval import RetrievalMAP

model = fill(nn.Linear(6, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
values, labels = normal(32, 6), integers(4, 32)
kinds = MetricCollection(
    {"accuracy": MulticlassAccuracy(4), "f1": MulticlassF1Score(4), "ece": MulticlassCalibrationError(4)}
).to(DEVICE)
mean, confusion = MeanMetric().to(DEVICE), MulticlassConfusionMatrix(4).to(DEVICE)
steps, losses = [], []
for _ in range(3):
    for part, wanted in zip(values.split(8), labels.split(8)):
        optimizer.zero_grad()
        logits = model(part)
        loss = F.cross_entropy(logits, wanted)
        loss.backward()
        optimizer.step()
        steps.append({k: v.item() for k, v in kinds(logits.softmax(-1).detach(), wanted).items()})
        confusion.update(logits.argmax(-1), wanted)
        mean.update(loss)
        losses.append(loss.item())
whole = kinds.compute()
kinds.reset()

guess, truth = normal(40), normal(40, seed=1)
regression = {}
for metric in (MeanSquaredError(), PearsonCorrCoef(), SpearmanCorrCoef(), R2Score()):
    metric.to(DEVICE).update(guess[:20], truth[:20])
    metric.update(guess[20:], truth[20:])
    regression[type(metric).__name__] = metric.compute()
pictures, others = uniform(2, 3, 32, 32), uniform(2, 3, 32, 32, seed=1)
tell(
    losses=losses,
    steps=steps,
    whole=whole,
    mean=mean.compute(),
    confusion=confusion.compute(),
    regression=regression,
    auroc=BinaryAUROC().to(DEVICE)(torch.sigmoid(guess), integers(2, 40)),
    ssim=StructuralSimilarityIndexMeasure(data_range=1.0).to(DEVICE)(pictures, others),
    psnr=PeakSignalNoiseRatio(data_range=1.0).to(DEVICE)(pictures, others),
    map=RetrievalMAP().to(DEVICE)(torch.sigmoid(guess), integers(2, 40), indexes=integers(4, 40, seed=2)),
    cosine=pairwise_cosine_similarity(values[:4], values[4:9]),
)
