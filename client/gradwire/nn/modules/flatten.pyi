# Derived by tools/stubs.py from the objects that are there at run time: run `make derive`.

from gradwire.nn.reshaping import Flatten as Flatten, Unflatten as Unflatten

