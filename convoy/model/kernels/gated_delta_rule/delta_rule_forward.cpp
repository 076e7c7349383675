// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>
#include <cstring>
#include <memory>

#include "convoy/model/kernels/gated_delta_rule/delta_rule_heads.h"
#include "convoy/model/kernels/simd/element.h"

namespace convoy::kernels::delta_rule {
namespace {

// Some columns of one head of one row.
struct ForwardTask {
  int64_t row = 0;
  int64_t head = 0;
  int64_t first_panel = 0;
  int64_t end_panel = 0;
};

struct ForwardScratch {
  explicit ForwardScratch(const Shape& shape)
      : q(kTile * shape.key_features),
        k(kTile * shape.key_features),
        v(kTile * kPanelColumns),
        out(kTile * kPanelColumns),
        query_keys(kTile),
        decays(kTile),
        betas(kTile),
        state(shape.head_state()) {}

  std::vector<float> q, k, v, out, query_keys, decays, betas, state;
};

// Where the panels of a state lie.
struct StatePanels {
  float* first = nullptr;
  int64_t stride = 0;  // from feature to feature
  int64_t step = 0;    // from panel to panel
};

template <class Element>
class HeadForward {
 public:
  HeadForward(const DeltaRuleTensors& inputs, const Shape& shape, const at::Tensor& out_THF,
              ForwardScratch& scratch)
      : inputs_(inputs), shape_(shape), out_THF_(out_THF), scratch_(scratch) {}

  // `state` [E, F] is read and replaced; null: the row begins with zeros.
  void run(const ForwardTask& task, TokenRange row, float* state) {
    // One token reads and writes a state where it lies; more of them are worth a copy whose rows
    // lie together.
    const bool in_place =
        state != nullptr && row.count == 1 && shape_.value_features % kPanelColumns == 0;
    const StatePanels panels =
        in_place ? StatePanels{state + task.first_panel * kPanelColumns, shape_.value_features,
                               kPanelColumns}
                 : StatePanels{scratch_.state.data(), kPanelColumns, shape_.panel_state()};
    if (!in_place) copy_state<true>(task, state);
    for (int64_t at = 0; at < row.count; at += kTile)
      run_tile(task, {row.begin + at, std::min(kTile, row.count - at)}, panels);
    if (!in_place && state != nullptr) copy_state<false>(task, state);
  }

 private:
  // Copies a state [E, F] to the panels in scratch memory, or back.
  template <bool to_panels>
  void copy_state(const ForwardTask& task, float* state) {
    if (state == nullptr) {
      std::fill(scratch_.state.begin(), scratch_.state.end(), 0.0f);
      return;
    }
    float* panel_row = scratch_.state.data();
    for (int64_t panel = task.first_panel; panel < task.end_panel; ++panel) {
      const int64_t columns = shape_.columns_of(panel);
      for (int64_t feature = 0; feature < shape_.key_features;
           ++feature, panel_row += kPanelColumns) {
        float* row = state + feature * shape_.value_features + panel * kPanelColumns;
        std::memcpy(to_panels ? panel_row : row, to_panels ? row : panel_row,
                    columns * sizeof(float));
        if (to_panels) std::fill(panel_row + columns, panel_row + kPanelColumns, 0.0f);
      }
    }
  }

  void run_tile(const ForwardTask& task, TokenRange tile, const StatePanels& state) {
    const DeltaRuleTokens tokens = read_tokens(task.head, tile);
    for (int64_t panel = task.first_panel; panel < task.end_panel; ++panel) {
      const auto v = panel_rows<Element>(inputs_.v_THF, tile, task.head, panel, scratch_.v.data());
      const auto out = out_rows(tile, task.head, panel);
      simd_kernels<float>().delta_rule(
          tokens, {.v_TF = v.first,
                   .v_stride = v.stride,
                   .out_TF = out.first,
                   .out_stride = out.stride,
                   .state = state.first + (panel - task.first_panel) * state.step,
                   .state_stride = state.stride});
      if (out.first == scratch_.out.data())
        write_panel<Element>(out.first, out.stride, tile, task.head, panel, out_THF_);
    }
  }

  // Returns the memory in which a panel of the output is computed: the output's own, or scratch.
  PanelRows<float> out_rows(TokenRange tile, int64_t head, int64_t panel) {
    if (!lies_as_floats<Element>(out_THF_, panel)) return {scratch_.out.data(), kPanelColumns};
    return {out_THF_.mutable_data_ptr<float>() + tile.begin * out_THF_.stride(0) +
                head * out_THF_.stride(1) + panel * kPanelColumns,
            out_THF_.stride(0)};
  }

  DeltaRuleTokens read_tokens(int64_t head, TokenRange tile) {
    const int64_t features = shape_.key_features, key_head = head / shape_.group();
    float *q = scratch_.q.data(), *k = scratch_.k.data();
    unit_vectors<Element>(inputs_.q_TKE, tile, key_head, query_scale(shape_), q, nullptr);
    unit_vectors<Element>(inputs_.k_TKE, tile, key_head, 1.0f, k, nullptr);
    const float* log_decays = inputs_.log_decay_TH.const_data_ptr<float>();
    const float* betas = inputs_.beta_TH.const_data_ptr<float>();
    for (int64_t token = 0; token < tile.count; ++token) {
      const int64_t at = (tile.begin + token) * shape_.heads + head;
      scratch_.query_keys[token] =
          simd_kernels<float>().dot(q + token * features, k + token * features, features);
      scratch_.decays[token] = std::exp(log_decays[at]);
      scratch_.betas[token] = betas[at];
    }
    return {.q_TE = q,
            .k_TE = k,
            .query_keys_T = scratch_.query_keys.data(),
            .decays_T = scratch_.decays.data(),
            .betas_T = scratch_.betas.data(),
            .tokens = tile.count,
            .features = features};
  }

  const DeltaRuleTensors& inputs_;
  const Shape& shape_;
  const at::Tensor& out_THF_;
  ForwardScratch& scratch_;
};

// Heads are split into columns only as far as threads would have nothing to do.
std::vector<ForwardTask> forward_tasks(const RowIndex& rows, const Shape& shape) {
  const std::vector<int64_t> order = rows_by_length(rows);
  const int64_t heads = std::max<int64_t>(1, std::ssize(order) * shape.heads);
  const int64_t wanted = (2 * at::get_num_threads() + heads - 1) / heads;
  const int64_t parts = std::clamp<int64_t>(at::get_num_threads() > 1 ? wanted : 1, 1,
                                            std::max<int64_t>(1, shape.panels));
  std::vector<ForwardTask> tasks;
  for (const int64_t row : order) {
    for (int64_t head = 0; head < shape.heads; ++head) {
      for (int64_t part = 0; part < parts; ++part)
        tasks.push_back(
            {row, head, part * shape.panels / parts, (part + 1) * shape.panels / parts});
    }
  }
  return tasks;
}

}  // namespace

at::Tensor run_forward(const DeltaRuleTensors& inputs, const RowIndex& rows,
                       const at::Tensor& states_SHEF, const std::vector<int64_t>& slots) {
  const Shape shape(inputs);
  const at::Tensor out_THF = at::empty(inputs.v_THF.sizes(), inputs.v_THF.options());
  const std::vector<ForwardTask> tasks = forward_tasks(rows, shape);
  const int64_t of_state = shape.key_features * shape.value_features;
  const auto state_of = [&](const ForwardTask& task) -> float* {
    if (!states_SHEF.defined()) return nullptr;
    return states_SHEF.mutable_data_ptr<float>() + slots[task.row] * states_SHEF.stride(0) +
           task.head * of_state;
  };
  constexpr int64_t kPasses = 4;  // products for each number of a state
  const int64_t work = rows.num_tokens() * shape.heads * of_state * kPasses;
  with_element(inputs.v_THF, "gated_delta_rule", [&](auto element) {
    for_tasks(std::ssize(tasks), work, [&]() -> TaskBody {
      auto scratch = std::make_shared<ForwardScratch>(shape);
      return [&, scratch](int64_t index) {
        const ForwardTask& task = tasks[index];
        HeadForward<decltype(element)>(inputs, shape, out_THF, *scratch)
            .run(task, {rows.begin(task.row), rows.length(task.row)}, state_of(task));
      };
    });
  });
  return out_THF;
}

}  // namespace convoy::kernels::delta_rule
