// SPDX-License-Identifier: Apache-2.0
//
// The sizes of a model that decide how much memory its training needs. Recipes count them on a
// loaded model; memory_estimate.h derives them from a config.json.
#pragma once

#include <cstdint>
#include <vector>

namespace convoy::sizing {

// The parameters of a unit that have one type and are all trained or all frozen. Sharding gathers
// them together, in one collective (parallel/sharded).
struct ParameterPart {
  int64_t elements = 0;
  int64_t bytes = 0;
  bool trained = false;
  bool beside_frozen = false;  // trained, in a unit with frozen parameters too

  bool operator==(const ParameterPart&) const = default;
};

// A part of the model that is used as a whole: the embedding, a block, the head.
struct UnitShape {
  std::vector<ParameterPart> parts = {};
  int64_t packed_bytes = 0;  // copies of its frozen weights, packed for the CPU's products

  bool operator==(const UnitShape&) const = default;
};

struct TrainingShape {
  std::vector<UnitShape> units = {};
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t vocab = 0;
  // Activations of a block, in elements per token. `kept`: held from forward to backward.
  // `at_work`: held in addition while backward computes the block.
  int64_t kept = 0;
  int64_t at_work = 0;
  int64_t recomputed = 0;     // part of `kept`: outputs of norms and activations
  int64_t element_bytes = 4;  // activations' size
  int64_t head_elements = 0;
  bool trains_head = false;
  bool tied_head = false;  // the head is the embedding, whose gradient backward completes last
  // The largest temporary copy of a weight. Products unfold a weight of few bits into their type
  // each time, and DoRA's norms need a copy in fp32.
  int64_t unfolded_bytes = 0;
  bool on_cpu = true;

  bool operator==(const TrainingShape&) const = default;
};

// The additional memory of DoRA for one adapted map. `kept` and `at_work` are elements per token.
// `kept` holds both terms that the magnitude multiplies. With dropout (`own_input`) it also holds
// the dropped inputs, which several maps of one input then cannot share.
struct DoraWidths {
  int64_t kept = 0;
  int64_t at_work = 0;  // gradients of the terms, while backward computes the map
  // Bytes of the sum whose norms are taken, and of a copy of the weight when the weight is not
  // fp32.
  int64_t norm_bytes = 0;
};
DoraWidths dora_widths(int64_t out, int64_t in, bool own_input, int64_t weight_element_bytes,
                       bool coded);

}  // namespace convoy::sizing
