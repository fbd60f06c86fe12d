"""Quantization: the modules that say ``torch.ao`` and their older names, whose classes and functions are refused at the
call. What computes in floating point before anything is quantized is real and stands in those modules."""

from __future__ import annotations

import sys
from typing import Final

from .stand_ins import stand_in

NAMES: Final[dict[str, str]] = {
    "ao.quantization": """
        AffineQuantizedObserverBase FakeQuantize FakeQuantizeBase FixedQParamsFakeQuantize FixedQParamsObserver
        FusedMovingAvgObsFakeQuantize Granularity HistogramObserver MappingType MinMaxObserver
        MovingAverageMinMaxObserver MovingAveragePerChannelMinMaxObserver NoopObserver ObserverBase PerAxis PerBlock
        PerChannelMinMaxObserver PerGroup PerRow PerTensor PerToken PlaceholderObserver QConfigDynamic
        QConfigMapping QuantType RecordingObserver ReuseInputObserver TorchAODType UniformQuantizationObserverBase
        ZeroPointDomain add_quant_dequant convert convert_dynamic_jit convert_jit default_activation_only_qconfig
        default_affine_fixed_qparams_fake_quant default_affine_fixed_qparams_observer default_debug_observer
        default_debug_qconfig default_dynamic_fake_quant default_dynamic_qat_qconfig default_dynamic_qconfig
        default_dynamic_quant_observer default_embedding_fake_quant default_embedding_fake_quant_4bit
        default_embedding_qat_qconfig default_embedding_qat_qconfig_4bit default_eval_fn default_fake_quant
        default_fixed_qparams_range_0to1_fake_quant default_fixed_qparams_range_0to1_observer
        default_fixed_qparams_range_neg1to1_fake_quant default_fixed_qparams_range_neg1to1_observer
        default_float_qparams_observer default_float_qparams_observer_4bit default_fused_act_fake_quant
        default_fused_per_channel_wt_fake_quant default_fused_wt_fake_quant default_histogram_fake_quant
        default_histogram_observer default_observer default_per_channel_qconfig
        default_per_channel_symmetric_qnnpack_qat_qconfig default_per_channel_symmetric_qnnpack_qconfig
        default_per_channel_weight_fake_quant default_per_channel_weight_observer default_placeholder_observer
        default_qat_qconfig default_qat_qconfig_v2 default_qconfig default_quint8_weight_qconfig
        default_reuse_input_observer default_reuse_input_qconfig default_symmetric_fixed_qparams_fake_quant
        default_symmetric_fixed_qparams_observer default_symmetric_qnnpack_qat_qconfig
        default_symmetric_qnnpack_qconfig default_weight_fake_quant default_weight_observer
        default_weight_only_qconfig disable_fake_quant disable_observer enable_fake_quant enable_observer
        float16_dynamic_qconfig float16_static_qconfig float_qparams_weight_only_qconfig
        float_qparams_weight_only_qconfig_4bit fuse_conv_bn fuse_conv_bn_jit fuse_conv_bn_relu fuse_convtranspose_bn
        fuse_linear_bn fuse_modules fuse_modules_qat fused_per_channel_wt_fake_quant_range_neg_127_to_127
        fused_wt_fake_quant_range_neg_127_to_127 get_block_size get_default_compare_output_module_list
        get_default_custom_config_dict get_default_dynamic_quant_module_mappings
        get_default_dynamic_sparse_quant_module_mappings get_default_float_to_quantized_operator_mappings
        get_default_qat_module_mappings get_default_qat_qconfig get_default_qat_qconfig_dict
        get_default_qat_qconfig_mapping get_default_qconfig get_default_qconfig_dict get_default_qconfig_mapping
        get_default_qconfig_propagation_list get_default_static_quant_module_mappings
        get_default_static_quant_reference_module_mappings get_default_static_sparse_quant_module_mappings
        get_dynamic_quant_module_class get_embedding_qat_module_mappings get_embedding_static_quant_module_mappings
        get_fuser_method get_fuser_method_new get_observer_state_dict get_quantized_operator
        get_static_quant_module_class load_observer_state_dict no_observer_set per_channel_dynamic_qconfig
        per_channel_weight_observer_range_neg_127_to_127 prepare prepare_dynamic_jit prepare_jit prepare_qat
        propagate_qconfig_ qconfig_equals quantize quantize_dynamic quantize_dynamic_jit quantize_jit quantize_qat
        script_qconfig script_qconfig_dict swap_module weight_observer_range_neg_127_to_127
    """,
    "ao.nn.quantized": """
        BatchNorm2d BatchNorm3d Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d DeQuantize
        Dropout ELU Embedding EmbeddingBag FXFloatFunctional GroupNorm Hardswish InstanceNorm1d InstanceNorm2d
        InstanceNorm3d LSTM LayerNorm LeakyReLU Linear MultiheadAttention PReLU QFunctional Quantize ReLU6 Sigmoid
        Softmax
    """,
    "ao.nn.quantized.dynamic": """
        Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d GRU GRUCell LSTM LSTMCell Linear RNNCell
    """,
    "ao.nn.qat": """
        Conv1d Conv2d Conv3d Embedding EmbeddingBag Linear
    """,
    "ao.nn.qat.dynamic": """
        Linear
    """,
    "ao.nn.quantizable": """
        LSTM LSTMCell MultiheadAttention
    """,
    "ao.nn.intrinsic": """
        ConvAdd2d ConvAddReLU2d
    """,
    "ao.nn.intrinsic.qat": """
        ConvBn1d ConvBn2d ConvBn3d ConvBnReLU1d ConvBnReLU2d ConvBnReLU3d ConvReLU1d ConvReLU2d ConvReLU3d LinearBn1d
        LinearReLU freeze_bn_stats update_bn_stats
    """,
    "ao.nn.intrinsic.quantized": """
        BNReLU2d BNReLU3d ConvAdd2d ConvAddReLU2d ConvReLU1d ConvReLU2d ConvReLU3d LinearLeakyReLU LinearReLU
        LinearTanh
    """,
    "ao.pruning": """
        BaseScheduler BaseSparsifier CubicSL FakeSparsity LambdaSL NearlyDiagonalSparsifier WeightNormSparsifier
        fqn_to_module get_arg_info_from_tensor_fqn get_dynamic_sparse_quantized_mapping
        get_static_sparse_quantized_mapping module_to_fqn
    """,
}  # fmt: skip
"""By module of PyTorch's: its classes, functions and settings that gradwire refuses."""

_INSTEAD: Final = "there are no quantized dtypes"


def fill(module: str) -> list[str]:
    """Put the refused names of a module of ``gradwire.ao`` into it. Returns the names that it exports."""
    given = vars(sys.modules[module])
    place = module.removeprefix("gradwire.")
    for name in NAMES[place].split():
        if name not in given:
            given[name] = stand_in(f"torch.{place}.{name}", _INSTEAD, module)
    real = [name for name, value in given.items() if getattr(value, "__module__", "").startswith("gradwire.ao.")]
    return sorted(name for name in real if not name.startswith("_"))
