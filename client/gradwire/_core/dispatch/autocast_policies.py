"""Which operations autocast runs in the lower precision, which in float32, and which in the widest of their operands'.

The tables follow what PyTorch documents for each kind of device (its "Automatic Mixed Precision" notes); an operation
that is in none runs in what it is given.
"""

from __future__ import annotations

from typing import Final

LOWER, FLOAT32, WIDEST, REFUSED = 1, 2, 3, 4

_PRODUCTS: Final = [
    "addbmm", "addmm", "baddbmm", "bmm", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "einsum", "linear", "matmul", "mm", "prelu", "scaled_dot_product_attention",
    "rnn_layer", "lstm_layer",
]  # fmt: skip
_LOSSES: Final = [
    "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cross_entropy", "hinge_embedding_loss",
    "kl_div", "l1_loss", "margin_ranking_loss", "mse_loss", "multi_margin_loss", "multilabel_margin_loss",
    "nll_loss", "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss", "triplet_margin_loss",
]  # fmt: skip
_CUDA: Final = [
    "acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log1p", "log2", "reciprocal", "rsqrt",
    "sinh", "tan", "pow", "softplus", "layer_norm", "group_norm", "rms_norm", "norm",
    "cosine_similarity", "normalize", "cumprod", "cumsum", "pdist", "cdist",
    "prod", "renorm", "sum", "softmax", "log_softmax", "logsumexp",
]  # fmt: skip
_CUDA_WIDEST: Final = [
    "addcdiv", "addcmul", "atan2", "bilinear", "cross", "dot", "vdot", "grid_sampler", "index_put", "tensordot",
    "scatter_add", "inner",
]  # fmt: skip

_CPU: Final = [
    "avg_pool3d", "binary_cross_entropy", "grid_sampler", "polar", "prod", "quantile", "nanquantile", "cdist",
    "trace", "view_as_complex", "linalg_cholesky", "linalg_cholesky_ex", "cholesky_inverse", "cholesky_solve",
    "inverse", "linalg_inv_ex", "linalg_lu_solve", "ormqr", "linalg_householder_product", "linalg_pinv",
    "max_pool3d", "max_pool3d_with_indices", "max_unpool", "adaptive_avg_pool3d", "adaptive_max_pool3d",
    "huber_loss", "ctc_loss", "fractional_max_pool", "linalg_solve", "linalg_solve_ex", "linalg_svd",
    "linalg_svdvals", "linalg_eig", "linalg_eigh", "linalg_eigvals", "linalg_eigvalsh", "linalg_qr",
    "linalg_lstsq", "linalg_lu_factor_ex", "geqrf", "triangular_solve",
]  # fmt: skip
_CPU_WIDEST: Final = ["index_copy"]
POLICIES: Final[dict[str, dict[str, int]]] = {
    "cuda": {
        **dict.fromkeys([*_PRODUCTS, "addmv", "addr", "gru_layer", "mv"], LOWER),
        **dict.fromkeys([*_CUDA, *_LOSSES], FLOAT32),
        **dict.fromkeys(_CUDA_WIDEST, WIDEST),
        "binary_cross_entropy": REFUSED,
    },
    "cpu": {
        **dict.fromkeys([*_PRODUCTS, "tensordot", "inner"], LOWER),
        **dict.fromkeys([*_CPU, *_LOSSES], FLOAT32),
        **dict.fromkeys(_CPU_WIDEST, WIDEST),
    },
}
"""By kind of device, what becomes of an operation."""
