// SPDX-License-Identifier: Apache-2.0
//
// Forward and backward of packed attention. Work is one task per (row, query head). A first phase
// packs keys and values for the GEMM loops, once per (row, key/value head): query heads that share
// them read one copy. Memory: each thread holds the scores of a block of queries, in forward
// against the keys of a split. All threads share the packed operands and, in backward, the fp32
// sums of dK and dV of every query head (2 x H x S x E), which are added up at the end.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "convoy/model/kernels/attention/attention_ops.h"
#include "convoy/model/kernels/simd/simd_kernels.h"

namespace convoy::kernels::attention {

struct Inputs {
  at::Tensor q_THE;  // last dimension contiguous, also of keys and values
  std::vector<CachedRow> rows;
  std::vector<int64_t> row_starts;  // where the queries of each row begin
  AttentionConfig config;

  int64_t num_rows() const { return static_cast<int64_t>(rows.size()); }
  int64_t num_heads() const { return q_THE.size(1); }
  int64_t num_kv_heads() const { return rows[0].k_SKE.size(1); }
  int64_t queries(int64_t row) const { return row_starts[row + 1] - row_starts[row]; }
  int64_t keys(int64_t row) const { return rows[row].k_SKE.size(0); }
};

struct Output {
  at::Tensor out_THE;
  at::Tensor log_sum_exp_HT;  // fp32
};
Output run_forward(const Inputs& inputs);

// Only for rows that have exactly their queries' tokens as keys. `grad_THE` is contiguous.
AttentionGradients run_backward(const Inputs& inputs, const Output& output,
                                const at::Tensor& grad_THE);

struct KeyRange {
  int64_t begin = 0;
  int64_t end = 0;
};
// The keys that a query sees; `position` is its index among the keys of its row.
inline KeyRange visible_keys(int64_t position, const AttentionConfig& config) {
  const int64_t begin =
      config.sliding_window > 0 ? std::max<int64_t>(0, position - config.sliding_window + 1) : 0;
  return {begin, position + 1};
}

// Caps the scores of visible keys in place if the model caps scores. Returns the factor that is
// left for attention_weights().
inline float cap_scores(float* scores, int64_t count, const AttentionConfig& config) {
  const auto scale = static_cast<float>(config.scale);
  if (config.score_cap == 0) return scale;
  simd_kernels<float>().soft_cap(scores, scores, count,
                                 {scale, static_cast<float>(config.score_cap)});
  return 1.0f;
}

// (row, head) pairs of rows with queries, longest rows first, so that threads end together.
struct HeadTask {
  int64_t row = 0;
  int64_t head = 0;
};
std::vector<HeadTask> head_tasks(const Inputs& inputs, int64_t heads);

// The work of the scores of all tasks, and the work of packing keys or values, in the unit of
// simd/element.h.
int64_t score_work(const Inputs& inputs, const std::vector<HeadTask>& tasks);
int64_t packing_work(const Inputs& inputs, const std::vector<HeadTask>& tasks);

// One head of one tensor: element (token, feature) at data[token * stride + feature].
template <class Element>
struct Slice {
  Element* data = nullptr;
  int64_t stride = 0;

  Element* at(int64_t token) const { return data + token * stride; }
};
template <class Element>
Slice<const Element> read_head(const at::Tensor& x_THE, int64_t token, int64_t head) {
  return {x_THE.const_data_ptr<Element>() + token * x_THE.stride(0) + head * x_THE.stride(1),
          x_THE.stride(0)};
}
template <class Element>
Slice<Element> write_head(const at::Tensor& x_THE, int64_t token, int64_t head) {
  return {x_THE.mutable_data_ptr<Element>() + token * x_THE.stride(0) + head * x_THE.stride(1),
          x_THE.stride(0)};
}

// One packed operand (keys or values) of every key/value head, for the rows that have queries.
template <class Element>
class PackedHeads {
 public:
  enum class Layout { FeaturesByKeys, KeysByFeatures };  // k by n of the GEMM's B

  PackedHeads(const Inputs& inputs, Layout layout) : layout_(layout), buffers_(inputs.rows.size()) {
    for (int64_t row = 0; row < inputs.num_rows(); ++row) {
      shapes_.push_back(shape(inputs.keys(row), inputs.q_THE.size(2)));
      if (inputs.queries(row) == 0) continue;
      buffers_[row] = std::make_unique_for_overwrite<Element[]>(
          inputs.num_kv_heads() * packed_elements<Element>(shapes_.back()));
    }
  }

  void pack(HeadTask task, Slice<const Element> from) {
    const GemmShape packed = shapes_[task.row];
    Element* to = buffers_[task.row].get() + task.head * packed_elements<Element>(packed);
    const auto& loops = simd_kernels<Element>();
    const auto loop = layout_ == Layout::FeaturesByKeys ? loops.pack_columns : loops.pack_rows;
    loop(from.data, from.stride, packed, to);
  }

  PackedView<Element> view(HeadTask task) const {
    const GemmShape packed = shapes_[task.row];
    return {buffers_[task.row].get() + task.head * packed_elements<Element>(packed),
            panel_elements<Element>(packed.k)};
  }

 private:
  GemmShape shape(int64_t keys, int64_t features) const {
    if (layout_ == Layout::FeaturesByKeys) return {.m = 0, .n = keys, .k = features};
    return {.m = 0, .n = features, .k = keys};
  }

  Layout layout_;
  std::vector<GemmShape> shapes_;
  std::vector<std::unique_ptr<Element[]>> buffers_;  // by row
};

}  // namespace convoy::kernels::attention
