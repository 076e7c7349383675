// SPDX-License-Identifier: Apache-2.0
//
// The table of one instruction set. The including file has set its target and opened its namespace.

template <class Element>
constexpr SimdKernels<Element> make_table() {
  SimdKernels<Element> table{};
  table.rms_norm = rms_norm<Element>;
  table.rms_norm_backward = rms_norm_backward<Element>;
  table.rotate = rotate<Element>;
  table.gated_silu = gated<Element, silu>;
  table.gated_gelu_tanh = gated<Element, gelu_tanh>;
  table.gated_sigmoid = gated<Element, plain_sigmoid>;
  table.gated_silu_backward = gated_backward<Element, silu>;
  table.gated_gelu_tanh_backward = gated_backward<Element, gelu_tanh>;
  table.gated_sigmoid_backward = gated_backward<Element, plain_sigmoid>;
  table.attention_weights = attention_weights<Element>;
  table.attention_weights_backward = attention_weights_backward;
  table.soft_cap = soft_cap;
  table.capped_weights_backward = capped_weights_backward;
  table.dot = dot<Element>;
  table.round_row = round_row<Element>;
  table.add_rows = add_rows;
  table.multiply_rows = multiply_rows;
  table.blend_rows = blend_rows;
  table.log_sum_exp = log_sum_exp;
  table.softmax_row = softmax_row<Element>;
  table.capped_softmax_row = capped_softmax_row<Element>;
  table.logit_range = logit_range<Element>;
  table.largest_logit = largest_logit<Element>;
  table.weigh_logits = weigh_logits;
  table.logit_mass = logit_mass;
  table.keep_weights = keep_weights;
  table.find_logits = find_logits;
  table.compact_logits = compact_logits;
  table.to_float = to_float<Element>;
  table.sum = sum_row;
  table.sum_of_squares = sum_of_squares<Element>;
  table.adamw = adamw<Element>;
  table.shifted_sums = shifted_sums;
  table.activate_pairs = activate_pairs;
  table.activate_mean = activate_mean;
  table.pairs_gradient_sums = pairs_gradient_sums;
  table.mean_gradient_sums = mean_gradient_sums;
  table.pairs_gradient = pairs_gradient;
  table.mean_gradient = mean_gradient;
  table.delta_rule = delta_rule<true>;
  table.delta_rule_changes = delta_rule<false>;
  table.convolve_silu = convolve<Element, Element, true>;
  table.convolve_silu_backward = convolve_silu_backward<Element>;
  table.convolve = convolve<float, Element, false>;
  table.pack_rows = pack_rows_from<Element, Element>;
  table.pack_columns = pack_columns<Element>;
  table.pack_float_rows = pack_rows_from<float, Element>;
  table.multiply_bytes = multiply_bytes<Element>;
  table.multiply_nibbles = multiply_nibbles<Element>;
  table.unpack_bytes = unpack_codes<Element, 8>;
  table.unpack_nibbles = unpack_codes<Element, 4>;
  table.group_sums = group_sums<Element>;
  table.add_scaled = add_scaled;
  table.decode_nibbles = decode_nibbles<Element>;
  table.decode_bytes = decode_bytes<Element>;
  table.transpose = transpose_rows<Element>;
  table.multiply = multiply<Element>;
  return table;
}

extern const SimdKernels<float> kFloatTable;
extern const SimdKernels<c10::BFloat16> kBf16Table;
const SimdKernels<float> kFloatTable = make_table<float>();
const SimdKernels<c10::BFloat16> kBf16Table = make_table<c10::BFloat16>();
