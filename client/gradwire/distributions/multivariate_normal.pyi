# Derived by tools/stubs.py from the objects that are there at run time: run `make derive`.

from gradwire.distributions.distribution import Distribution as Distribution
from gradwire.distributions.multivariate import MultivariateNormal as MultivariateNormal, _batch_mahalanobis as _batch_mahalanobis, _batch_mv as _batch_mv, _precision_to_scale_tril as _precision_to_scale_tril
from gradwire.distributions.parameters import lazy_property as lazy_property
from gradwire.distributions.utils import _standard_normal as _standard_normal

