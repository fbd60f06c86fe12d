"""Probability distributions: densities, samples through which gradients flow, and divergences.

The names and meanings are PyTorch's. Densities and the like are recorded as any op is; samples are drawn on the server,
from the session's generator. Arguments are checked there, too: a check costs no round trip, and one that fails is
raised at the next read.
"""

from .._core.surface.module_aliases import add_aliases as _add_aliases
from .._core.surface.unsupported import explaining as _explaining
from . import constraints, transforms, utils
from .composed import MixtureSameFamily, TransformedDistribution
from .constraint_registry import biject_to, transform_to
from .counts import Binomial, Multinomial, NegativeBinomial, Poisson
from .distribution import Distribution, ExponentialFamily, Independent
from .kl import kl_divergence, register_kl
from .multivariate import LKJCholesky, LowRankMultivariateNormal, MultivariateNormal, Wishart
from .outcomes import *
from .positive import *
from .real_line import Cauchy, Gumbel, Laplace, Normal, StudentT, Uniform, VonMises
from .relaxed import RelaxedBernoulli, RelaxedOneHotCategorical
from .transforms import *
from .unit_interval import Beta, Dirichlet, Kumaraswamy, LogisticNormal

__all__ = [
    "AbsTransform", "AffineTransform", "Bernoulli", "Beta", "Binomial", "CatTransform", "Categorical", "Cauchy",
    "Chi2", "ComposeTransform", "ContinuousBernoulli", "CorrCholeskyTransform", "CumulativeDistributionTransform",
    "Dirichlet", "Distribution", "ExpTransform", "Exponential", "ExponentialFamily", "FisherSnedecor", "Gamma",
    "GeneralizedPareto", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal", "Independent", "IndependentTransform",
    "InverseGamma", "Kumaraswamy", "LKJCholesky", "Laplace", "LogNormal", "LogisticNormal", "LowRankMultivariateNormal",
    "LowerCholeskyTransform", "MixtureSameFamily", "Multinomial", "MultivariateNormal", "NegativeBinomial", "Normal",
    "OneHotCategorical", "OneHotCategoricalStraightThrough", "Pareto", "Poisson", "PositiveDefiniteTransform",
    "PowerTransform", "RelaxedBernoulli", "RelaxedOneHotCategorical", "ReshapeTransform", "SigmoidTransform",
    "SoftmaxTransform", "SoftplusTransform", "StackTransform", "StickBreakingTransform", "StudentT", "TanhTransform",
    "Transform", "TransformedDistribution", "Uniform", "VonMises", "Weibull", "Wishart", "biject_to", "constraints",
    "identity_transform", "kl_divergence", "register_kl", "transform_to", "transforms", "utils",
]  # fmt: skip

_PATHS = """
bernoulli: Bernoulli   beta: Beta   binomial: Binomial   categorical: Categorical   cauchy: Cauchy   chi2: Chi2
continuous_bernoulli: ContinuousBernoulli   dirichlet: Dirichlet   exp_family: ExponentialFamily
exponential: Exponential   fishersnedecor: FisherSnedecor   gamma: Gamma   generalized_pareto: GeneralizedPareto
geometric: Geometric   gumbel: Gumbel   half_cauchy: HalfCauchy   half_normal: HalfNormal   independent: Independent
inverse_gamma: InverseGamma   kumaraswamy: Kumaraswamy   laplace: Laplace   lkj_cholesky: LKJCholesky
log_normal: LogNormal   logistic_normal: LogisticNormal
lowrank_multivariate_normal: LowRankMultivariateNormal multivariate._batch_capacitance_tril
  multivariate._batch_lowrank_logdet multivariate._batch_lowrank_mahalanobis multivariate._batch_mahalanobis
  multivariate._batch_mv utils._standard_normal
mixture_same_family: MixtureSameFamily   multinomial: Multinomial
multivariate_normal: MultivariateNormal multivariate._batch_mahalanobis multivariate._batch_mv
  multivariate._precision_to_scale_tril utils._standard_normal utils.lazy_property Distribution
negative_binomial: NegativeBinomial   normal: Normal
one_hot_categorical: OneHotCategorical OneHotCategoricalStraightThrough   pareto: Pareto   poisson: Poisson
relaxed_bernoulli: RelaxedBernoulli relaxed.LogitRelaxedBernoulli
relaxed_categorical: RelaxedOneHotCategorical relaxed.ExpRelaxedCategorical   studentT: StudentT
transformed_distribution: TransformedDistribution   uniform: Uniform   von_mises: VonMises   weibull: Weibull
wishart: Wishart
"""
_add_aliases(__name__, _PATHS, __name__)

__getattr__ = _explaining(__name__)
