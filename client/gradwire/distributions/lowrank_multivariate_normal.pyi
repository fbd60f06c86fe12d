# Derived by tools/stubs.py from the objects that are there at run time: run `make derive`.

from gradwire.distributions.multivariate import LowRankMultivariateNormal as LowRankMultivariateNormal, _batch_capacitance_tril as _batch_capacitance_tril, _batch_lowrank_logdet as _batch_lowrank_logdet, _batch_lowrank_mahalanobis as _batch_lowrank_mahalanobis, _batch_mahalanobis as _batch_mahalanobis, _batch_mv as _batch_mv
from gradwire.distributions.utils import _standard_normal as _standard_normal

