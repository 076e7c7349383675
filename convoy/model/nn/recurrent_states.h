// SPDX-License-Identifier: Apache-2.0
//
// The memory that layers of Gated DeltaNet keep of rows being generated, in place of keys and
// values: the last inputs of the short convolution, and the state of the delta rule. Each row has
// one slot in all layers; the scheduler decides which one (generate/scheduler/scheduler.h). One
// thread. Shapes: S slots, C channels, V inputs of a channel, H value heads, E features of a key, F
// features of a value.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorOptions.h>

#include <cstdint>
#include <vector>

#include "convoy/model/architecture/decoder_spec.h"

namespace convoy::nn {

// `options`: element type of the model, and device. States of the rule are fp32.
int64_t recurrent_state_bytes(const architecture::DeltaNetSpec& sizes, int64_t num_layers,
                              const at::TensorOptions& options);

// The slot of a row in the next pass. `begins`: no token of the row was computed before.
struct StateSlot {
  int64_t slot = 0;
  bool begins = false;
};

class RecurrentStates {
 public:
  RecurrentStates() = default;  // for a model without such layers
  // `has_state`: by layer.
  RecurrentStates(const architecture::DeltaNetSpec& sizes, const std::vector<bool>& has_state,
                  int64_t num_slots, const at::TensorOptions& options);

  bool empty() const { return num_slots_ == 0; }
  int64_t num_slots() const { return num_slots_; }

  // The rows of the next pass, in its order. Clears the slots of rows that begin.
  void set_rows(const std::vector<StateSlot>& rows);
  const std::vector<int64_t>& slots() const { return slots_; }

  // The memory of a layer, which a pass reads and writes.
  const at::Tensor& conv_tails_SVC(int64_t layer) const { return layers_[layer].conv_tails_SVC; }
  const at::Tensor& delta_states_SHEF(int64_t layer) const {
    return layers_[layer].delta_states_SHEF;
  }

 private:
  struct Layer {
    at::Tensor conv_tails_SVC;  // undefined, as the states, in other layers
    at::Tensor delta_states_SHEF;
  };
  int64_t num_slots_ = 0;
  std::vector<Layer> layers_;
  std::vector<int64_t> slots_;
};

}  // namespace convoy::nn
