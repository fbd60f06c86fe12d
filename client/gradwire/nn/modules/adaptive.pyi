# Derived by tools/stubs.py from the objects that are there at run time: run `make derive`.

from gradwire.nn.loss import AdaptiveLogSoftmaxWithLoss as AdaptiveLogSoftmaxWithLoss, _ASMoutput as _ASMoutput

