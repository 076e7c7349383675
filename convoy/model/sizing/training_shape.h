// SPDX-License-Identifier: Apache-2.0
//
// The properties of a model that decide the memory of its training: counts, no values. recipes/
// makes them from a loaded model, decoder_shape.h from a config.json.
#pragma once

#include <cstdint>
#include <vector>

namespace convoy::sizing {

// The parameters of a unit that have one type and are all trained or all frozen: what travels as
// one (parallel/sharded).
struct ParameterPart {
  int64_t elements = 0;
  int64_t bytes = 0;
  bool trained = false;
  bool beside_frozen = false;  // trained, in a unit that has frozen ones too

  bool operator==(const ParameterPart&) const = default;
};

// A part of the model that is used as a whole: the embedding, a block, the head.
struct UnitShape {
  std::vector<ParameterPart> parts = {};
  int64_t packed_bytes = 0;  // copies of its frozen weights in the order of the CPU's products

  bool operator==(const UnitShape&) const = default;
};

struct TrainingShape {
  std::vector<UnitShape> units = {};
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t vocab = 0;
  // Elements per token and block: from forward to backward, and more while backward is in it.
  int64_t kept = 0;
  int64_t at_work = 0;
  int64_t recomputed = 0;     // part of `kept`: outputs of norms and activations
  int64_t element_bytes = 4;  // activations' size
  int64_t head_elements = 0;
  bool trains_head = false;
  bool tied_head = false;  // the head is the embedding, whose gradient backward completes last
  // The largest weight as it lies beside the model for a moment: in the type of the products, where
  // weights of few bits are unfolded for each, or in fp32, for the norms of DoRA.
  int64_t unfolded_bytes = 0;
  bool on_cpu = true;

  bool operator==(const TrainingShape&) const = default;
};

// The additional memory of DoRA for one adapted map. Elements per token: both terms that its
// magnitude multiplies, and with dropout the dropped inputs, which maps of one input no longer
// share.
struct DoraWidths {
  int64_t kept = 0;
  int64_t at_work = 0;  // gradients of the terms, while backward is in the map
  // Bytes of the sum for the norms, and of its weight where that is not fp32.
  int64_t norm_bytes = 0;
};
DoraWidths dora_widths(int64_t out, int64_t in, bool own_input, int64_t weight_element_bytes,
                       bool coded);

}  // namespace convoy::sizing
