"""A part of the `onnx` package's own cases; `conformance/onnx` runs all of them."""

import pytest

from conformance.onnx.cases import node_cases, run_case
from tests.onnx.graphs import machine

# One prefix for each group of operators; whole prefixes would take a minute.
NAMES = """
abs acos add and argmax_keepdims_example averagepool_2d_ceil averagepool_2d_same_lower averagepool_3d_default
attention_3d_gqa attention_4d_causal attention_4d_softcap basic_conv_with_padding batchnorm_example bitshift_left_uint8
cast_FLOAT_to_FLOAT16 cast_FLOAT_to_BFLOAT16 cast_FLOAT_to_INT4 castlike_FLOAT_to_STRING clip_example col2im
compress_0 concat_2d_axis_1 constantofshape_float_ones conv_with_autopad_same convinteger_with_padding
convtranspose_dilations cumsum_2d_axis_0 depthtospace_crd_mode_example dequantizelinear_axis
dequantizelinear_blocked det_nd dft_axis dropout_default_mask dynamicquantizelinear einsum_batch_matmul elu erf
expand_dim_changed eyelike_with_dtype flatten_axis2 gather_elements_0 gather_negative_indices gathernd_example_int32
gelu_default_1 gemm_all_attributes globalaveragepool globalmaxpool gridsample_bicubic group_normalization_example
gru_with_initial_bias hardmax_axis_0 hardsigmoid if_seq identity_sequence instancenorm_example isinf leakyrelu
layer_normalization_4d_axis1 logsoftmax_axis_1 loop11 loop13_seq lrn lstm_with_peepholes matmul_4d matmulinteger
maxpool_2d_dilations maxpool_with_argmax_2d_precomputed_pads maxunpool_export_with_output_shape mean_example mish
mod_mixed_sign_float16 mvn negative_axes nllloss_NCd1d2_weight_ii nonmaxsuppression_flipped_coordinates nonzero_example
onehot_with_axis optional_get_element_sequence pow_types_int32_float32 prelu_broadcast qlinearconv
qlinearmatmul_3D_int8 quantizelinear_e4m3fn quantizelinear_int4 range_float_type_positive_delta
reduce_l2_keep_dims_example reduce_log_sum_exp_do_not_keepdims_random reduce_sum_empty_axes_input_noop_example
reflect_pad reshape_allowzero_reordered resize_downsample_scales_cubic_antialias resize_tf_crop_and_resize
resize_upsample_sizes_nearest_floor_align_corners reversesequence_batch rms_normalization_3d_axis1 roialign_mode_max
rotary_embedding_interleaved scan9_sum scatter_elements_with_duplicate_indices scatternd_add sce_mean_weight_ii_log_prob
sequence_map_add_2_sequences shape_start_1_end_2 simple_rnn_with_initial_bias slice_neg_steps softmax_axis_0
softmax_large_number space_to_depth_example split_to_sequence_1 split_variable_parts_2d_opset18 squeeze_negative_axes
stft string_concat_broadcasting string_split_maxsplit strnormalizer_export_monday_casesensintive_lower
tfidfvectorizer_tf_onlybigrams_skip5 tile top_k_smallest transpose_all_permutations_3 tril_neg
unique_sorted_with_axis_3d unsqueeze_two_axes upsample_nearest where_long_example wrap_pad xor4d
"""


def cases():
    wanted = {f"test_{name}" for name in NAMES.split()}
    return [case for case in node_cases() if case.name in wanted]


@pytest.mark.filterwarnings("ignore")
def test_cases_of_every_group_of_operators_are_right(tmp_path) -> None:
    found = [run_case(case, machine(), tmp_path) for case in cases()]
    assert len(found) > 90
    assert [outcome for outcome in found if outcome.status != "right"] == []
