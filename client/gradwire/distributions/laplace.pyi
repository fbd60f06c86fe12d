# Derived by tools/stubs.py from the objects that are there at run time: run `make derive`.

from gradwire.distributions.real_line import Laplace as Laplace

