# Derived by tools/stubs.py from the objects that are there at run time: run `make derive`.

from gradwire.optim.algorithms import RAdam as RAdam

