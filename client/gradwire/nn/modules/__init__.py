"""``torch.nn.modules``: the module classes, and PyTorch's path to each of them."""

import sys

from ..._core.surface.module_aliases import add_aliases as _add_aliases
from . import module as module
from . import utils as utils

_nn = sys.modules["gradwire.nn"]

_NO_MODULES = {"Buffer", "DataParallel", "Parameter", "UninitializedBuffer", "UninitializedParameter"}
__all__ = [name for name in vars(_nn)["__all__"] if name[0].isupper() and name not in _NO_MODULES]
globals().update({name: getattr(_nn, name) for name in __all__})

_PATHS = """
activation: CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid LogSoftmax Mish
  MultiheadAttention PReLU RReLU ReLU ReLU6 SELU SiLU Sigmoid Softmax Softmax2d Softmin Softplus Softshrink Softsign
  Tanh Tanhshrink Threshold
adaptive: AdaptiveLogSoftmaxWithLoss loss._ASMoutput
batchnorm: BatchNorm1d BatchNorm2d BatchNorm3d LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d SyncBatchNorm
  normalization._BatchNorm normalization._NormBase
channelshuffle: ChannelShuffle
container: ModuleDict ModuleList ParameterDict ParameterList Sequential modules.module._addindent
conv: Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d LazyConv1d LazyConv2d LazyConv3d
  LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d conv._ConvNd
  conv._ConvTransposeNd conv._ConvTransposeMixin modules.utils._single modules.utils._pair modules.utils._triple
  modules.utils._reverse_repeat_tuple common_types._size_1_t common_types._size_2_t common_types._size_3_t
distance: CosineSimilarity PairwiseDistance
dropout: AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout dropout._DropoutNd
flatten: Flatten Unflatten
fold: Fold Unfold
instancenorm: InstanceNorm1d InstanceNorm2d InstanceNorm3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d
  normalization._InstanceNorm
lazy: lazy.LazyModuleMixin
linear: Bilinear Identity LazyLinear Linear linear.NonDynamicallyQuantizableLinear
linear_cross_entropy_options: LinearCrossEntropyOptions
loss: BCELoss BCEWithLogitsLoss CTCLoss CosineEmbeddingLoss CrossEntropyLoss GaussianNLLLoss HingeEmbeddingLoss
  HuberLoss KLDivLoss L1Loss LinearCrossEntropyLoss MSELoss MarginRankingLoss MultiLabelMarginLoss
  MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss NLLLoss2d PoissonNLLLoss SmoothL1Loss SoftMarginLoss
  TripletMarginLoss TripletMarginWithDistanceLoss loss._Loss loss._WeightedLoss
normalization: CrossMapLRN2d GroupNorm LayerNorm LocalResponseNorm RMSNorm
padding: CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d ReflectionPad1d
  ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d ZeroPad1d ZeroPad2d ZeroPad3d
  padding._ConstantPadNd padding._ReflectionPadNd padding._ReplicationPadNd padding._CircularPadNd
  modules.utils._ntuple modules.utils._pair modules.utils._quadruple common_types._size_2_t common_types._size_4_t
  common_types._size_6_t
pixelshuffle: PixelShuffle PixelUnshuffle
pooling: AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d
  AvgPool1d AvgPool2d AvgPool3d FractionalMaxPool2d FractionalMaxPool3d LPPool1d LPPool2d LPPool3d MaxPool1d MaxPool2d
  MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d pooling._MaxPoolNd pooling._AvgPoolNd pooling._LPPoolNd
  pooling._MaxUnpoolNd pooling._AdaptiveAvgPoolNd pooling._AdaptiveMaxPoolNd modules.utils._single modules.utils._pair
  modules.utils._triple common_types._size_any_t common_types._size_1_t common_types._size_2_t common_types._size_3_t
  common_types._size_any_opt_t common_types._size_2_opt_t common_types._size_3_opt_t common_types._ratio_2_t
  common_types._ratio_3_t
rnn: GRU GRUCell LSTM LSTMCell RNN RNNBase RNNCell RNNCellBase
sparse: Embedding EmbeddingBag
transformer: Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer
  transformer._generate_square_subsequent_mask transformer._get_activation_fn transformer._get_clones
upsampling: Upsample UpsamplingBilinear2d UpsamplingNearest2d common_types._size_2_t common_types._ratio_2_t
  common_types._size_any_t common_types._ratio_any_t
"""
_add_aliases(__name__, _PATHS, "gradwire.nn")


def __dir__() -> list[str]:
    return sorted({*__all__, *globals()})
