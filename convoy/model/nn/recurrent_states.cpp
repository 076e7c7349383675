// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/nn/recurrent_states.h"

#include <ATen/ATen.h>

#include <utility>

#include "convoy/core/base/error.h"

namespace convoy::nn {

int64_t recurrent_state_bytes(const architecture::DeltaNetSpec& sizes, int64_t num_layers,
                              const at::TensorOptions& options) {
  const int64_t tails = sizes.conv_channels() * (sizes.conv_width - 1);
  const int64_t states = sizes.num_value_heads * sizes.key_head_dim * sizes.value_head_dim;
  constexpr int64_t kStateBytes = 4;
  return num_layers *
         (tails * static_cast<int64_t>(options.dtype().itemsize()) + states * kStateBytes);
}

RecurrentStates::RecurrentStates(const architecture::DeltaNetSpec& sizes,
                                 const std::vector<bool>& has_state, int64_t num_slots,
                                 const at::TensorOptions& options)
    : num_slots_(num_slots), layers_(has_state.size()) {
  for (size_t layer = 0; layer < has_state.size(); ++layer) {
    if (!has_state[layer]) continue;
    layers_[layer] = {
        at::empty({num_slots, sizes.conv_width - 1, sizes.conv_channels()}, options),
        at::empty({num_slots, sizes.num_value_heads, sizes.key_head_dim, sizes.value_head_dim},
                  options.dtype(at::kFloat))};
  }
}

void RecurrentStates::check_slot(int64_t slot) const {
  CONVOY_INVARIANT(slot >= 0 && slot < num_slots_, "slot {} of {}", slot, num_slots_);
}

void RecurrentStates::copy(const Copy& slots) {
  for (const Layer& layer : layers_) {
    if (!layer.delta_states_SHEF.defined()) continue;
    for (const at::Tensor& stored : {layer.conv_tails_SVC, layer.delta_states_SHEF})
      stored.select(0, slots.to).copy_(stored.select(0, slots.from));
  }
}

void RecurrentStates::keep_states() {
  for (const Copy& slots : std::exchange(kept_, {})) copy(slots);
}

void RecurrentStates::set_rows(const std::vector<StateSlot>& rows) {
  slots_.clear();
  kept_.clear();
  for (const StateSlot& row : rows) {
    check_slot(row.slot);
    slots_.push_back(row.slot);
    if (row.kept_in) {
      check_slot(*row.kept_in);
      kept_.push_back({.from = row.slot, .to = *row.kept_in});
    }
    if (row.begins_as) {
      check_slot(*row.begins_as);
      copy({.from = *row.begins_as, .to = row.slot});
    }
    if (!row.begins) continue;
    for (const Layer& layer : layers_) {
      if (!layer.delta_states_SHEF.defined()) continue;
      layer.conv_tails_SVC.select(0, row.slot).zero_();
      layer.delta_states_SHEF.select(0, row.slot).zero_();
    }
  }
}

}  // namespace convoy::nn
