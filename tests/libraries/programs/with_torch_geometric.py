"""Graph networks: classes of nodes by several kinds of layers, classes of graphs in batches."""

import torch
from numpy_numbers import DEVICE, fill, integers, normal, norms_of_gradients, tell, train
from torch import nn
from torch.nn import functional as F
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv, global_mean_pool
from torch_geometric.utils import add_self_loops, degree, to_dense_adj, to_undirected


class Nodes(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([GCNConv(6, 8), GATConv(8, 4, heads=2), SAGEConv(8, 8), GINConv(nn.Linear(8, 3))])

    def forward(self, x, edges):
        for layer in self.layers[:-1]:
            x = layer(x, edges).relu()
        return self.layers[-1](x, edges)


class Graphs(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.head = GCNConv(6, 8), nn.Linear(8, 2)

    def forward(self, data):
        return self.head(global_mean_pool(self.conv(data.x, data.edge_index).relu(), data.batch))


edges = to_undirected(integers(12, 2, 20))
x, labels = normal(12, 6), integers(3, 12)
model = fill(Nodes())
losses = train(model, lambda: F.cross_entropy(model(x, edges), labels))
gradients = norms_of_gradients(model)
graphs = [
    Data(
        x=normal(5, 6, seed=k, device="cpu"),
        edge_index=integers(5, 2, 8, seed=k, device="cpu"),
        y=torch.tensor([k % 2]),
    )
    for k in range(6)
]
batches = [batch.to(DEVICE) for batch in DataLoader(graphs, batch_size=3)]
classifier = fill(Graphs())
further = [train(classifier, lambda b=b: F.cross_entropy(classifier(b), b.y), steps=2) for b in batches]
tell(
    edges=edges,
    losses=losses,
    gradients=gradients,
    further=further,
    logits=model(x, edges),
    degrees=degree(edges[0], 12),
    dense=to_dense_adj(edges)[0],
    loops=add_self_loops(edges)[0],
    part=batches[0].to_data_list()[1].x,
)
