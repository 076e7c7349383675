// SPDX-License-Identifier: Apache-2.0
//
// Scores and softmax are fp32; weights are rounded to the model's type before the product with the
// values.
#include "convoy/model/kernels/attention/attention_splits.h"
#include "convoy/model/kernels/attention/attention_tasks.h"
#include "convoy/model/kernels/simd/element.h"

namespace convoy::kernels::attention {
namespace {

// Queries of a block. They are few, because each query reads the keys up to the last query of its
// block. 16 queries are two tiles of the GEMM loop.
constexpr int64_t kQueryBlock = 16;

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
  SplitSums split;
  MergedSums merged;
};

// Queries begin ... begin + count of a row, the first of which is the row's key `position`.
struct QueryBlock {
  int64_t begin = 0;
  int64_t count = 0;
  int64_t position = 0;
};

// The keys [origin, end) of one split; `origin` is a multiple of kPanelColumns.
template <class Element>
void attend_split(const Head<Element>& head, const AttentionConfig& config, PackedView<Element> k,
                  PackedView<Element> v, const QueryBlock& block, KeyRange keys,
                  Scratch<Element>& scratch) {
  const auto& loops = simd_kernels<Element>();
  const int64_t width = keys.end - keys.begin;
  const int64_t padded = round_up(width, kPanelColumns);
  const int64_t padded_features = round_up(head.features, kPanelColumns);
  SplitSums& split = scratch.split;
  loops.multiply(head.q.at(block.begin), head.q.stride, k.from(keys.begin, 0),
                 scratch.scores.data(), padded, {block.count, width, head.features}, false);
  for (int64_t query = 0; query < block.count; ++query) {
    const KeyRange seen = visible_keys(block.position + query, config);
    const int64_t from = std::max(seen.begin, keys.begin) - keys.begin;
    const int64_t to = std::min(seen.end, keys.end) - keys.begin;
    float* scores = scratch.scores.data() + query * padded;
    Element* weights = scratch.weights.data() + query * padded;
    if (from >= to) {
      std::fill_n(weights, padded, Element(0.0f));
      split.log_sum_exp[query] = kNothing;
      continue;
    }
    const float scale = cap_scores(scores + from, to - from, config);
    split.totals[query] = loops.attention_weights(scores, weights, from, to, padded, scale,
                                                  &split.log_sum_exp[query]);
  }
  loops.multiply(scratch.weights.data(), padded, v.from(0, keys.begin), split.sums.data(),
                 padded_features, {block.count, head.features, width}, false);
}

template <class Element>
void attend_block(const Head<Element>& head, const AttentionConfig& config, PackedView<Element> k,
                  PackedView<Element> v, const QueryBlock& block, Scratch<Element>& scratch) {
  const int64_t padded_features = round_up(head.features, kPanelColumns);
  const int64_t end = block.position + block.count;
  scratch.split.make(block.count, padded_features);
  scratch.merged.restart(block.count, padded_features);
  int64_t origin = visible_keys(block.position, config).begin / kPanelColumns * kPanelColumns;
  while (origin < end) {
    const int64_t next = (origin / kSplitKeys + 1) * kSplitKeys;
    attend_split(head, config, k, v, block, {origin, std::min(next, end)}, scratch);
    scratch.merged.add(scratch.split, block.count, padded_features);
    origin = next;
  }
  for (int64_t query = 0; query < block.count; ++query) {
    simd_kernels<Element>().round_row(scratch.merged.sums.data() + query * padded_features,
                                      head.out.at(block.begin + query), head.features,
                                      1.0f / scratch.merged.totals[query]);
    head.log_sum_exp[block.begin + query] = scratch.merged.log_sum_exp(query);
  }
}

template <class Element>
void attend_packed(const Head<Element>& head, const AttentionConfig& config, PackedView<Element> k,
                   PackedView<Element> v, Scratch<Element>& scratch) {
  const int64_t block_scores =
      kQueryBlock * std::min(kSplitKeys, round_up(head.keys, kPanelColumns));
  scratch.scores.resize(block_scores);
  scratch.weights.resize(block_scores);
  for (int64_t begin = 0; begin < head.queries; begin += kQueryBlock) {
    const QueryBlock block{begin, std::min(kQueryBlock, head.queries - begin),
                           head.keys - head.queries + begin};
    attend_block(head, config, k, v, block, scratch);
  }
}

template <class Element>
void attend_all(const Inputs& inputs, const Output& output) {
  using Packed = PackedHeads<Element>;
  const int64_t group = inputs.num_heads() / inputs.num_kv_heads();
  Packed packed_k(inputs, Packed::Layout::FeaturesByKeys);
  Packed packed_v(inputs, Packed::Layout::KeysByFeatures);
  const std::vector<HeadTask> kv_tasks = head_tasks(inputs, inputs.num_kv_heads());
  for_tasks(static_cast<int64_t>(kv_tasks.size()), packing_work(inputs, kv_tasks),
            [&]() -> TaskBody {
              return [&](int64_t index) {
                const HeadTask task = kv_tasks[index];
                packed_k.pack(task, read_head<Element>(inputs.rows[task.row].k_SKE, 0, task.head));
                packed_v.pack(task, read_head<Element>(inputs.rows[task.row].v_SKE, 0, task.head));
              };
            });
  const std::vector<HeadTask> tasks = head_tasks(inputs, inputs.num_heads());
  for_tasks(static_cast<int64_t>(tasks.size()), score_work(inputs, tasks), [&]() -> TaskBody {
    auto scratch = std::make_shared<Scratch<Element>>();
    return [&, scratch](int64_t index) {
      const HeadTask task = tasks[index];
      const HeadTask kv{task.row, task.head / group};
      attend_packed(make_head<Element>(inputs, output, task), inputs.config, packed_k.view(kv),
                    packed_v.view(kv), *scratch);
    };
  });
}

}  // namespace

std::vector<HeadTask> head_tasks(const Inputs& inputs, int64_t heads) {
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < inputs.num_rows(); ++row) {
    if (inputs.queries(row) > 0) rows.push_back(row);
  }
  std::stable_sort(rows.begin(), rows.end(), [&](int64_t a, int64_t b) {
    return inputs.queries(a) * inputs.keys(a) > inputs.queries(b) * inputs.keys(b);
  });
  std::vector<HeadTask> tasks;
  for (int64_t row : rows) {
    for (int64_t head = 0; head < heads; ++head) tasks.push_back({row, head});
  }
  return tasks;
}

int64_t score_work(const Inputs& inputs, const std::vector<HeadTask>& tasks) {
  int64_t pairs = 0;
  for (const HeadTask& task : tasks)
    pairs += std::max(inputs.queries(task.row), kRowsOfReading) * inputs.keys(task.row);
  return 2 * pairs * inputs.q_THE.size(2);
}

int64_t packing_work(const Inputs& inputs, const std::vector<HeadTask>& tasks) {
  int64_t keys = 0;
  for (const HeadTask& task : tasks) keys += inputs.keys(task.row);
  return 2 * keys * inputs.q_THE.size(2) * kWorkOfElement;
}

Output run_forward(const Inputs& inputs) {
  const at::Tensor& q = inputs.q_THE;
  Output output{.out_THE = at::empty(q.sizes(), q.options()),
                .log_sum_exp_HT = at::empty({q.size(1), q.size(0)}, q.options().dtype(at::kFloat))};
  if (q.numel() == 0 || inputs.rows.empty()) return output;
  with_element(q, "attention",
               [&](auto element) { attend_all<decltype(element)>(inputs, output); });
  return output;
}

}  // namespace convoy::kernels::attention
