# Derived by tools/stubs.py from the objects that are there at run time: run `make derive`.

from gradwire.nn.distance import CosineSimilarity as CosineSimilarity, PairwiseDistance as PairwiseDistance

