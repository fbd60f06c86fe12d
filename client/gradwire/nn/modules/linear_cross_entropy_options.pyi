# Derived by tools/stubs.py from the objects that are there at run time: run `make derive`.

from gradwire.nn.loss import LinearCrossEntropyOptions as LinearCrossEntropyOptions

