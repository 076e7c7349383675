// SPDX-License-Identifier: Apache-2.0
//
// Scores in fp32, softmax in fp32, weights rounded to the model's type before they meet the values.
#include <numeric>

#include "convoy/kernels/attention/attention_tasks.h"
#include "convoy/kernels/simd/element.h"

namespace convoy::kernels::attention {
namespace {

// Queries of a row up to which packing its keys costs more than plain dot products.
constexpr int64_t kFewQueries = 8;

template <class Element>
struct Head {
  Slice<const Element> q;
  Slice<Element> out;
  float* log_sum_exp;
  int64_t queries;
  int64_t keys;
  int64_t features;
};

template <class Element>
Head<Element> make_head(const Inputs& inputs, const Output& output, HeadTask task) {
  const int64_t begin = inputs.row_starts[task.row];
  float* log_sum_exp = output.log_sum_exp_HT.mutable_data_ptr<float>();
  return {.q = read_head<Element>(inputs.q_THE, begin, task.head),
          .out = write_head<Element>(output.out_THE, begin, task.head),
          .log_sum_exp = log_sum_exp + task.head * output.log_sum_exp_HT.stride(0) + begin,
          .queries = inputs.queries(task.row),
          .keys = inputs.keys(task.row),
          .features = inputs.q_THE.size(2)};
}

template <class Element>
struct Scratch {
  std::vector<float> scores;
  std::vector<Element> weights;
  std::vector<float> sums;
  std::vector<float> out;
};

// Dot products straight from the cache.
template <class Element>
void attend_few(const Head<Element>& head, const AttentionConfig& config, Slice<const Element> k,
                Slice<const Element> v, Scratch<Element>& scratch) {
  const auto& loops = simd_kernels<Element>();
  scratch.scores.resize(head.keys);
  scratch.out.resize(head.features);
  float* scores = scratch.scores.data();
  for (int64_t query = 0; query < head.queries; ++query) {
    const KeyRange range = visible_keys(head.keys - head.queries + query, config);
    for (int64_t key = range.begin; key < range.end; ++key) {
      scores[key] = loops.dot(head.q.at(query), k.at(key), head.features);
    }
    const float total = simd_kernels<float>().attention_weights(
        scores, scores, range.begin, range.end, head.keys, static_cast<float>(config.scale),
        head.log_sum_exp + query);
    loops.weighted_sum(scores + range.begin, v.at(range.begin), v.stride,
                       {range.end - range.begin, head.features}, scratch.out.data());
    loops.round_row(scratch.out.data(), head.out.at(query), head.features, 1.0f / total);
  }
}

template <class Element>
void attend_block(const Head<Element>& head, const AttentionConfig& config, PackedView<Element> k,
                  PackedView<Element> v, int64_t begin, Scratch<Element>& scratch) {
  const auto& loops = simd_kernels<Element>();
  const int64_t count = std::min(kQueryBlock, head.queries - begin);
  const int64_t position = head.keys - head.queries + begin;
  const int64_t first = visible_keys(position, config).begin / kPanelColumns * kPanelColumns;
  const int64_t width = position + count - first;
  const int64_t padded = round_up(width, kPanelColumns);
  const int64_t padded_features = round_up(head.features, kPanelColumns);
  loops.multiply(head.q.at(begin), head.q.stride, k.from(first, 0), scratch.scores.data(), padded,
                 {count, width, head.features}, false);
  for (int64_t query = 0; query < count; ++query) {
    const KeyRange range = visible_keys(position + query, config);
    scratch.sums[query] = loops.attention_weights(
        scratch.scores.data() + query * padded, scratch.weights.data() + query * padded,
        range.begin - first, range.end - first, padded, static_cast<float>(config.scale),
        head.log_sum_exp + begin + query);
  }
  loops.multiply(scratch.weights.data(), padded, v.from(0, first), scratch.out.data(),
                 padded_features, {count, head.features, width}, false);
  for (int64_t query = 0; query < count; ++query) {
    loops.round_row(scratch.out.data() + query * padded_features, head.out.at(begin + query),
                    head.features, 1.0f / scratch.sums[query]);
  }
}

template <class Element>
void attend_packed(const Head<Element>& head, const AttentionConfig& config, PackedView<Element> k,
                   PackedView<Element> v, Scratch<Element>& scratch) {
  const int64_t block_scores = kQueryBlock * round_up(head.keys, kPanelColumns);
  scratch.scores.resize(block_scores);
  scratch.weights.resize(block_scores);
  scratch.sums.resize(kQueryBlock);
  scratch.out.resize(kQueryBlock * round_up(head.features, kPanelColumns));
  for (int64_t begin = 0; begin < head.queries; begin += kQueryBlock) {
    attend_block(head, config, k, v, begin, scratch);
  }
}

template <class Element>
void forward_all(const Inputs& inputs, const Output& output) {
  using Packed = PackedHeads<Element>;
  const int64_t group = inputs.num_heads() / inputs.num_kv_heads();
  Packed packed_k(inputs, Packed::Layout::FeaturesByKeys);
  Packed packed_v(inputs, Packed::Layout::KeysByFeatures);
  const std::vector<HeadTask> kv_tasks = head_tasks(inputs, inputs.num_kv_heads());
  for_tasks(static_cast<int64_t>(kv_tasks.size()), [&]() -> TaskBody {
    return [&](int64_t index) {
      const HeadTask task = kv_tasks[index];
      if (inputs.queries(task.row) <= kFewQueries) return;
      packed_k.pack(task, read_head<Element>(inputs.rows[task.row].k_SKE, 0, task.head));
      packed_v.pack(task, read_head<Element>(inputs.rows[task.row].v_SKE, 0, task.head));
    };
  });
  const std::vector<HeadTask> tasks = head_tasks(inputs, inputs.num_heads());
  for_tasks(static_cast<int64_t>(tasks.size()), [&]() -> TaskBody {
    auto scratch = std::make_shared<Scratch<Element>>();
    return [&, scratch](int64_t index) {
      const HeadTask task = tasks[index];
      const HeadTask kv{task.row, task.head / group};
      const Head<Element> head = make_head<Element>(inputs, output, task);
      if (head.queries > kFewQueries) {
        attend_packed(head, inputs.config, packed_k.view(kv), packed_v.view(kv), *scratch);
      } else {
        attend_few(head, inputs.config, read_head<Element>(inputs.rows[kv.row].k_SKE, 0, kv.head),
                   read_head<Element>(inputs.rows[kv.row].v_SKE, 0, kv.head), *scratch);
      }
    };
  });
}

}  // namespace

std::vector<HeadTask> head_tasks(const Inputs& inputs, int64_t heads) {
  std::vector<int64_t> rows(inputs.rows.size());
  std::iota(rows.begin(), rows.end(), 0);
  std::stable_sort(rows.begin(), rows.end(), [&](int64_t a, int64_t b) {
    return inputs.queries(a) * inputs.keys(a) > inputs.queries(b) * inputs.keys(b);
  });
  std::vector<HeadTask> tasks;
  for (int64_t row : rows) {
    for (int64_t head = 0; head < heads && inputs.queries(row) > 0; ++head)
      tasks.push_back({row, head});
  }
  return tasks;
}

Output run_forward(const Inputs& inputs) {
  const at::Tensor& q = inputs.q_THE;
  Output output{.out_THE = at::empty(q.sizes(), q.options()),
                .log_sum_exp_HT = at::empty({q.size(1), q.size(0)}, q.options().dtype(at::kFloat))};
  if (q.numel() == 0 || inputs.rows.empty()) return output;
  with_element(q, "attention",
               [&](auto element) { forward_all<decltype(element)>(inputs, output); });
  return output;
}

}  // namespace convoy::kernels::attention
