// SPDX-License-Identifier: Apache-2.0
//
// The memory that layers of Gated DeltaNet keep of rows being generated, in place of keys and
// values: the last inputs of the short convolution, and the state of the delta rule. Each row has
// one slot in all layers, and other slots keep states at ends of prefixes; the scheduler decides
// which ones (generate/scheduler/scheduler.h). One thread. Shapes: S slots, C channels, V inputs of
// a channel, H value heads, E features of a key, F features of a value.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorOptions.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "convoy/model/architecture/decoder_spec.h"

namespace convoy::nn {

// `options`: element type of the model, and device. States of the rule are fp32.
int64_t recurrent_state_bytes(const architecture::DeltaNetSpec& sizes, int64_t num_layers,
                              const at::TensorOptions& options);

// The slot of a row in the next pass. `begins`: no token of the row was computed before.
// `begins_as`: the slot whose state the row begins with instead. `kept_in`: the slot that keeps a
// copy of the row's state after the pass. These two slots belong to no row of the pass.
struct StateSlot {
  int64_t slot = 0;
  bool begins = false;
  std::optional<int64_t> begins_as = {};
  std::optional<int64_t> kept_in = {};
};

class RecurrentStates {
 public:
  RecurrentStates() = default;  // for a model without such layers
  // `has_state`: by layer.
  RecurrentStates(const architecture::DeltaNetSpec& sizes, const std::vector<bool>& has_state,
                  int64_t num_slots, const at::TensorOptions& options);

  bool empty() const { return num_slots_ == 0; }
  int64_t num_slots() const { return num_slots_; }

  // The rows of the next pass, in the order of the pass. Prepares the slots of rows that begin.
  void set_rows(const std::vector<StateSlot>& rows);
  // Call it after the pass: makes the copies that the rows ask for by `kept_in`.
  void keep_states();
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
  struct Copy {
    int64_t from = 0;
    int64_t to = 0;
  };
  void check_slot(int64_t slot) const;
  void copy(const Copy& slots);

  int64_t num_slots_ = 0;
  std::vector<Layer> layers_;
  std::vector<int64_t> slots_;
  std::vector<Copy> kept_;  // after the pass
};

}  // namespace convoy::nn
