// SPDX-License-Identifier: Apache-2.0
//
// Scores in fp32, softmax in fp32, weights rounded to the model's type before the product with the
// values.
#include "convoy/model/kernels/attention/attention_tasks.h"
#include "convoy/model/kernels/simd/element.h"

namespace convoy::kernels::attention {
namespace {

// Queries of a block: few, because each query reads the keys up to the last query of its block. 16
// are two tiles of the GEMM loop.
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
  std::vector<float> sums;
  std::vector<float> out;
};

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
    float* scores = scratch.scores.data() + query * padded;
    const float scale = cap_scores(scores + range.begin - first, range.end - range.begin, config);
    scratch.sums[query] = loops.attention_weights(scores, scratch.weights.data() + query * padded,
                                                  range.begin - first, range.end - first, padded,
                                                  scale, head.log_sum_exp + begin + query);
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

// Rows of more than kFewQueries queries.
template <class Element>
void attend_many(const Inputs& inputs, const Output& output) {
  using Packed = PackedHeads<Element>;
  constexpr int64_t least = kFewQueries + 1;
  const int64_t group = inputs.num_heads() / inputs.num_kv_heads();
  Packed packed_k(inputs, Packed::Layout::FeaturesByKeys, least);
  Packed packed_v(inputs, Packed::Layout::KeysByFeatures, least);
  const std::vector<HeadTask> kv_tasks = head_tasks(inputs, inputs.num_kv_heads(), least);
  for_tasks(static_cast<int64_t>(kv_tasks.size()), packing_work(inputs, kv_tasks),
            [&]() -> TaskBody {
              return [&](int64_t index) {
                const HeadTask task = kv_tasks[index];
                packed_k.pack(task, read_head<Element>(inputs.rows[task.row].k_SKE, 0, task.head));
                packed_v.pack(task, read_head<Element>(inputs.rows[task.row].v_SKE, 0, task.head));
              };
            });
  const std::vector<HeadTask> tasks = head_tasks(inputs, inputs.num_heads(), least);
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

std::vector<HeadTask> head_tasks(const Inputs& inputs, int64_t heads, int64_t least_queries) {
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < inputs.num_rows(); ++row) {
    if (inputs.queries(row) >= least_queries) rows.push_back(row);
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
               [&](auto element) { attend_many<decltype(element)>(inputs, output); });
  attend_few_queries(inputs, output);
  return output;
}

}  // namespace convoy::kernels::attention
