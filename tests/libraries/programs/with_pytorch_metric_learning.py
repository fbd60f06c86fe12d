"""Embeddings are learned with losses of pairs, triplets, classes and miners of hard samples."""

from numpy_numbers import fill, integers, normal, tell, train
from pytorch_metric_learning import distances, losses, miners, reducers
from torch import nn

values, labels = normal(16, 6), integers(4, 16)
results = {}
cosine = distances.CosineSimilarity()
objectives = {
    "triplet": losses.TripletMarginLoss(distance=cosine, reducer=reducers.ThresholdReducer(low=0)),
    "contrastive": losses.ContrastiveLoss(),
    "supervised": losses.SupConLoss(temperature=0.2),
    "multisimilarity": losses.MultiSimilarityLoss(),
    "ntxent": losses.NTXentLoss(),
    "arcface": fill(losses.ArcFaceLoss(num_classes=4, embedding_size=5)),
    "proxy": fill(losses.ProxyAnchorLoss(num_classes=4, embedding_size=5)),
}
mine = miners.MultiSimilarityMiner(epsilon=0.1)
for name, objective in objectives.items():
    model = fill(nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 5)))

    def loss(model=model, objective=objective, name=name):
        found = model(values)
        return objective(found, labels, mine(found, labels)) if name != "supervised" else objective(found, labels)

    results[name] = train(model, loss)
hard = miners.TripletMarginMiner(margin=0.2, type_of_triplets="semihard")(model(values), labels)
tell(**results, hard=[len(part) for part in hard], distances=cosine(model(values)))
