# Derived by tools/stubs.py from the objects that are there at run time: run `make derive`.

from gradwire.nn.dropout import AlphaDropout as AlphaDropout, Dropout as Dropout, Dropout1d as Dropout1d, Dropout2d as Dropout2d, Dropout3d as Dropout3d, FeatureAlphaDropout as FeatureAlphaDropout, _DropoutNd as _DropoutNd

