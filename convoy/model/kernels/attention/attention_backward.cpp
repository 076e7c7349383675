// SPDX-License-Identifier: Apache-2.0
//
// Backward from the log-sum-exp of forward (arXiv 2205.14135): weights P are computed again block
// by block. With dP = dO V^T and delta = rowsum(dO * O): dS = scale P (dP - delta), dQ = dS K, dK =
// dS^T Q, dV = P^T dO. Under a soft cap dS is multiplied by its slope, 1 - tanh^2. The last two are
// computed transposed, [E, S], because then P and dS are packed as they are stored; each query head
// has its own sums, added in head order at the end, so results do not depend on the number of
// threads.
#include "convoy/model/kernels/attention/attention_tasks.h"
#include "convoy/model/kernels/simd/element.h"

namespace convoy::kernels::attention {
namespace {

// Number of queries and of keys whose scores are held at a time: the scores, the packed operands
// and the sums of dK and dV stay in the cache of a core. More queries mean fewer additions to the
// sums.
constexpr int64_t kBackwardQueryBlock = 64;
constexpr int64_t kKeyBlock = 256;

template <class Element>
using Packed = PackedHeads<Element>;

template <class Element>
struct PackedRows {
  Packed<Element> keys_as_columns;    // for Q K^T
  Packed<Element> values_as_columns;  // for dO V^T
  Packed<Element> keys_as_rows;       // for dS K

  explicit PackedRows(const Inputs& inputs)
      : keys_as_columns(inputs, Packed<Element>::Layout::FeaturesByKeys),
        values_as_columns(inputs, Packed<Element>::Layout::FeaturesByKeys),
        keys_as_rows(inputs, Packed<Element>::Layout::KeysByFeatures) {}

  void pack(const Inputs& inputs, HeadTask task) {
    const auto k = read_head<Element>(inputs.rows[task.row].k_SKE, 0, task.head);
    keys_as_columns.pack(task, k);
    keys_as_rows.pack(task, k);
    values_as_columns.pack(task, read_head<Element>(inputs.rows[task.row].v_SKE, 0, task.head));
  }
};

// dK and dV of every query head, [E, S padded] each, fp32.
class HeadSums {
 public:
  HeadSums(const Inputs& inputs) : heads_(inputs.num_heads()), features_(inputs.q_THE.size(2)) {
    for (int64_t row = 0; row < inputs.num_rows(); ++row) {
      strides_.push_back(round_up(inputs.keys(row), kPanelColumns));
      // The sums are tensors, because long rows need megabytes, and device::MemoryBlockPool keeps
      // the memory of tensors from step to step.
      buffers_.push_back(at::zeros({2, heads_, features_, strides_.back()}, at::kFloat));
    }
  }
  float* keys(HeadTask task) {
    return buffers_[task.row].mutable_data_ptr<float>() +
           task.head * features_ * strides_[task.row];
  }
  float* values(HeadTask task) { return keys(task) + heads_ * features_ * strides_[task.row]; }
  int64_t stride(int64_t row) const { return strides_[row]; }

 private:
  int64_t heads_;
  int64_t features_;
  std::vector<int64_t> strides_;
  std::vector<at::Tensor> buffers_;
};

template <class Element>
struct BackwardScratch {
  std::vector<float> scores;
  std::vector<float> grad_weights;
  std::vector<Element> packed_weights;
  std::vector<Element> packed_grad_scores;
  std::vector<Element> grad_scores;
  std::vector<Element> q_transposed;
  std::vector<Element> grad_transposed;
  std::vector<float> grad_q;
  std::vector<float> deltas;

  void resize(int64_t keys, int64_t features) {
    const int64_t block = kBackwardQueryBlock * round_up(std::min(keys, kKeyBlock), kPanelColumns);
    scores.resize(block);
    grad_weights.resize(block);
    packed_weights.resize(block);
    packed_grad_scores.resize(block);
    grad_scores.resize(block);
    q_transposed.resize(kBackwardQueryBlock * features);
    grad_transposed.resize(kBackwardQueryBlock * features);
    grad_q.resize(kBackwardQueryBlock * round_up(features, kPanelColumns));
    deltas.resize(kBackwardQueryBlock);
  }
};

// Transposes [tokens, features] to [features, kBackwardQueryBlock].
template <class Element>
void transpose_block(Slice<const Element> from, int64_t tokens, int64_t features, Element* to) {
  for (int64_t token = 0; token < tokens; ++token) {
    const Element* row = from.at(token);
    for (int64_t feature = 0; feature < features; ++feature)
      to[feature * kBackwardQueryBlock + token] = row[feature];
  }
}

template <class Element>
class HeadBackward {
 public:
  HeadBackward(const Inputs& inputs, const Output& output, const at::Tensor& grad_THE,
               const at::Tensor& grad_q_THE, HeadTask task, BackwardScratch<Element>& scratch)
      : config_(inputs.config),
        q_(read_head<Element>(inputs.q_THE, inputs.row_starts[task.row], task.head)),
        out_(read_head<Element>(output.out_THE, inputs.row_starts[task.row], task.head)),
        grad_(read_head<Element>(grad_THE, inputs.row_starts[task.row], task.head)),
        grad_q_(write_head<Element>(grad_q_THE, inputs.row_starts[task.row], task.head)),
        log_sum_exp_(output.log_sum_exp_HT.const_data_ptr<float>() +
                     task.head * output.log_sum_exp_HT.stride(0) + inputs.row_starts[task.row]),
        tokens_(inputs.queries(task.row)),
        features_(inputs.q_THE.size(2)),
        scratch_(scratch) {}

  void run(const PackedRows<Element>& packed, HeadTask kv, float* key_sums, float* value_sums,
           int64_t stride) {
    scratch_.resize(tokens_, features_);
    for (int64_t begin = 0; begin < tokens_; begin += kBackwardQueryBlock) {
      const int64_t count = std::min(kBackwardQueryBlock, tokens_ - begin);
      const int64_t first = visible_keys(begin, config_).begin / kPanelColumns * kPanelColumns;
      prepare_queries(begin, count);
      for (int64_t key = first; key < begin + count; key += kKeyBlock) {
        const Block block = make_block({begin, begin + count}, {key, begin + count});
        weights_and_grad_scores(block, packed.keys_as_columns.view(kv),
                                packed.values_as_columns.view(kv));
        add_key_and_value_sums(block, key_sums, value_sums, stride);
        add_grad_q(block, packed.keys_as_rows.view(kv), key > first);
      }
      store_grad_q(begin, count);
    }
  }

 private:
  struct Block {
    int64_t begin;   // first query
    int64_t count;   // queries
    int64_t first;   // first key, a multiple of kPanelColumns
    int64_t width;   // keys
    int64_t padded;  // keys rounded up
  };

  static Block make_block(KeyRange queries, KeyRange keys) {
    const int64_t width = std::min(kKeyBlock, keys.end - keys.begin);
    return {queries.begin, queries.end - queries.begin, keys.begin, width,
            round_up(width, kPanelColumns)};
  }

  // Prepares the operands of the queries, which all blocks of keys share.
  void prepare_queries(int64_t begin, int64_t count) {
    for (int64_t index = 0; index < count; ++index)
      scratch_.deltas[index] =
          loops_.dot(grad_.at(begin + index), out_.at(begin + index), features_);
    transpose_block({grad_.at(begin), grad_.stride}, count, features_,
                    scratch_.grad_transposed.data());
    transpose_block({q_.at(begin), q_.stride}, count, features_, scratch_.q_transposed.data());
  }

  void weights_and_grad_scores(const Block& block, PackedView<Element> k, PackedView<Element> v) {
    const GemmShape shape{block.count, block.width, features_};
    loops_.multiply(q_.at(block.begin), q_.stride, k.from(block.first, 0), scratch_.scores.data(),
                    block.padded, shape, false);
    loops_.multiply(grad_.at(block.begin), grad_.stride, v.from(block.first, 0),
                    scratch_.grad_weights.data(), block.padded, shape, false);
    for (int64_t index = 0; index < block.count; ++index) {
      const int64_t query = block.begin + index;
      const KeyRange seen = visible_keys(query, config_);
      const int64_t from = std::clamp<int64_t>(seen.begin - block.first, 0, block.width);
      const int64_t to = std::clamp<int64_t>(seen.end - block.first, from, block.width);
      float* scores = scratch_.scores.data() + index * block.padded;
      float* grad_weights = scratch_.grad_weights.data() + index * block.padded;
      const auto scale = static_cast<float>(config_.scale);
      if (config_.score_cap == 0)
        loops_.attention_weights_backward(scores, grad_weights, from, to, block.padded, scale,
                                          log_sum_exp_[query], scratch_.deltas[index]);
      else
        loops_.capped_weights_backward(scores, grad_weights, from, to, block.padded,
                                       {scale, static_cast<float>(config_.score_cap)},
                                       log_sum_exp_[query], scratch_.deltas[index]);
    }
  }

  void add_key_and_value_sums(const Block& block, float* key_sums, float* value_sums,
                              int64_t stride) {
    const GemmShape packed{.m = 0, .n = block.width, .k = block.count};
    const int64_t panel_stride = panel_elements<Element>(block.count);
    loops_.pack_float_rows(scratch_.scores.data(), block.padded, packed,
                           scratch_.packed_weights.data());
    loops_.pack_float_rows(scratch_.grad_weights.data(), block.padded, packed,
                           scratch_.packed_grad_scores.data());
    const GemmShape shape{features_, block.width, block.count};
    loops_.multiply(scratch_.grad_transposed.data(), kBackwardQueryBlock,
                    {scratch_.packed_weights.data(), panel_stride}, value_sums + block.first,
                    stride, shape, true);
    loops_.multiply(scratch_.q_transposed.data(), kBackwardQueryBlock,
                    {scratch_.packed_grad_scores.data(), panel_stride}, key_sums + block.first,
                    stride, shape, true);
  }

  void add_grad_q(const Block& block, PackedView<Element> k, bool adds) {
    loops_.round_row(scratch_.grad_weights.data(), scratch_.grad_scores.data(),
                     block.count * block.padded, 1.0f);
    loops_.multiply(scratch_.grad_scores.data(), block.padded, k.from(0, block.first),
                    scratch_.grad_q.data(), round_up(features_, kPanelColumns),
                    {block.count, features_, block.width}, adds);
  }

  void store_grad_q(int64_t begin, int64_t count) {
    for (int64_t index = 0; index < count; ++index)
      loops_.round_row(scratch_.grad_q.data() + index * round_up(features_, kPanelColumns),
                       grad_q_.at(begin + index), features_, 1.0f);
  }

  const SimdKernels<Element>& loops_ = simd_kernels<Element>();
  AttentionConfig config_;
  Slice<const Element> q_;
  Slice<const Element> out_;
  Slice<const Element> grad_;
  Slice<Element> grad_q_;
  const float* log_sum_exp_;
  int64_t tokens_;
  int64_t features_;
  BackwardScratch<Element>& scratch_;
};

// Adds the sums of the heads that share a key/value head into the first of them, then transposes.
template <class Element>
void store_shared_sums(const Inputs& inputs, HeadTask kv, float* sums, int64_t stride,
                       const at::Tensor& grad_TKE) {
  const int64_t group = inputs.num_heads() / inputs.num_kv_heads();
  const int64_t features = inputs.q_THE.size(2);
  for (int64_t head = 1; head < group; ++head) {
    simd_kernels<Element>().add_rows(sums + head * features * stride, sums, features * stride);
  }
  const auto to = write_head<Element>(grad_TKE, inputs.row_starts[kv.row], kv.head);
  const int64_t keys = inputs.keys(kv.row);
  for (int64_t key = 0; key < keys; ++key) {
    for (int64_t feature = 0; feature < features; ++feature) {
      to.at(key)[feature] = static_cast<Element>(sums[feature * stride + key]);
    }
  }
}

template <class Element>
void backward_all(const Inputs& inputs, const Output& output, const at::Tensor& grad_THE,
                  const AttentionGradients& gradients) {
  const int64_t group = inputs.num_heads() / inputs.num_kv_heads();
  PackedRows<Element> packed(inputs);
  HeadSums sums(inputs);
  const std::vector<HeadTask> kv_tasks = head_tasks(inputs, inputs.num_kv_heads());
  for_tasks(
      static_cast<int64_t>(kv_tasks.size()), packing_work(inputs, kv_tasks),
      [&]() -> TaskBody { return [&](int64_t index) { packed.pack(inputs, kv_tasks[index]); }; });
  const std::vector<HeadTask> tasks = head_tasks(inputs, inputs.num_heads());
  for_tasks(static_cast<int64_t>(tasks.size()), score_work(inputs, tasks), [&]() -> TaskBody {
    auto scratch = std::make_shared<BackwardScratch<Element>>();
    return [&, scratch](int64_t index) {
      const HeadTask task = tasks[index];
      HeadBackward<Element>(inputs, output, grad_THE, gradients.q_THE, task, *scratch)
          .run(packed, {task.row, task.head / group}, sums.keys(task), sums.values(task),
               sums.stride(task.row));
    };
  });
  for_tasks(static_cast<int64_t>(kv_tasks.size()), packing_work(inputs, kv_tasks),
            [&]() -> TaskBody {
              return [&](int64_t index) {
                const HeadTask kv = kv_tasks[index];
                const HeadTask first{kv.row, kv.head * group};
                store_shared_sums<Element>(inputs, kv, sums.keys(first), sums.stride(kv.row),
                                           gradients.k_TKE);
                store_shared_sums<Element>(inputs, kv, sums.values(first), sums.stride(kv.row),
                                           gradients.v_TKE);
              };
            });
}

}  // namespace

AttentionGradients run_backward(const Inputs& inputs, const Output& output,
                                const at::Tensor& grad_THE) {
  const at::Tensor& q = inputs.q_THE;
  const std::vector<int64_t> kv_sizes{q.size(0), inputs.rows.empty() ? 0 : inputs.num_kv_heads(),
                                      q.size(2)};
  AttentionGradients gradients{.q_THE = at::empty(q.sizes(), q.options()),
                               .k_TKE = at::empty(kv_sizes, q.options()),
                               .v_TKE = at::empty(kv_sizes, q.options())};
  if (q.numel() == 0) return gradients;
  with_element(q, "attention", [&](auto element) {
    backward_all<decltype(element)>(inputs, output, grad_THE, gradients);
  });
  return gradients;
}

}  // namespace convoy::kernels::attention
