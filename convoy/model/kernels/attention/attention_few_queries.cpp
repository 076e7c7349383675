// SPDX-License-Identifier: Apache-2.0
//
// Rows of few tokens: one task per (row, key/value head) reads keys and values where they lie, once
// for the query heads that share them. Scores and weights in fp32.
#include "convoy/model/kernels/attention/attention_tasks.h"
#include "convoy/model/kernels/simd/element.h"

namespace convoy::kernels::attention {
namespace {

struct FewQueriesScratch {
  std::vector<float> scores;
  std::vector<float> totals;
  std::vector<float> sums;
};

template <class Element>
void attend(const Inputs& inputs, const Output& output, HeadTask kv, FewQueriesScratch& scratch) {
  const auto& loops = simd_kernels<Element>();
  const int64_t group = inputs.num_heads() / inputs.num_kv_heads();
  const int64_t features = inputs.q_THE.size(2);
  const int64_t keys = inputs.keys(kv.row);
  const auto k = read_head<Element>(inputs.rows[kv.row].k_SKE, 0, kv.head);
  const auto v = read_head<Element>(inputs.rows[kv.row].v_SKE, 0, kv.head);
  scratch.scores.resize(group * keys);
  scratch.totals.resize(group);
  scratch.sums.resize(group * features);
  float* log_sum_exp = output.log_sum_exp_HT.mutable_data_ptr<float>();
  for (int64_t query = 0; query < inputs.queries(kv.row); ++query) {
    const int64_t token = inputs.row_starts[kv.row] + query;
    const KeyRange range = visible_keys(keys - inputs.queries(kv.row) + query, inputs.config);
    const int64_t seen = range.end - range.begin;
    QueryShape shape{.queries = group,
                     .query_stride = inputs.q_THE.stride(1),
                     .keys = seen,
                     .key_stride = k.stride,
                     .features = features,
                     .score_stride = keys};
    loops.query_scores(read_head<Element>(inputs.q_THE, token, kv.head * group).data,
                       k.at(range.begin), scratch.scores.data(), shape);
    shape.query_stride = features;
    shape.key_stride = v.stride;
    for (int64_t head = 0; head < group; ++head) {
      float* scores = scratch.scores.data() + head * keys;
      const float scale = cap_scores(scores, seen, inputs.config);
      scratch.totals[head] = simd_kernels<float>().attention_weights(
          scores, scores, 0, seen, seen, scale,
          log_sum_exp + (kv.head * group + head) * output.log_sum_exp_HT.stride(0) + token);
    }
    loops.query_sums(scratch.scores.data(), v.at(range.begin), scratch.sums.data(), shape);
    for (int64_t head = 0; head < group; ++head)
      loops.round_row(scratch.sums.data() + head * features,
                      write_head<Element>(output.out_THE, token, kv.head * group + head).data,
                      features, 1.0f / scratch.totals[head]);
  }
}

template <class Element>
void attend_all(const Inputs& inputs, const Output& output) {
  std::vector<HeadTask> tasks;
  for (const HeadTask task : head_tasks(inputs, inputs.num_kv_heads())) {
    if (inputs.queries(task.row) <= kFewQueries) tasks.push_back(task);
  }
  for_tasks(static_cast<int64_t>(tasks.size()), score_work(inputs, tasks), [&]() -> TaskBody {
    auto scratch = std::make_shared<FewQueriesScratch>();
    return [&, scratch](int64_t index) { attend<Element>(inputs, output, tasks[index], *scratch); };
  });
}

}  // namespace

void attend_few_queries(const Inputs& inputs, const Output& output) {
  with_element(inputs.q_THE, "attention",
               [&](auto element) { attend_all<decltype(element)>(inputs, output); });
}

}  // namespace convoy::kernels::attention
