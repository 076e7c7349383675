// SPDX-License-Identifier: Apache-2.0
//
// The part of a forward pass that is not kept, and that the backward pass computes again.
#pragma once

#include <string_view>

namespace convoy::architecture {

enum class Recompute {
  Nothing,
  Selective,  // norms and activations; products and attention are kept
  Blocks,     // all but the input of each block
};

// "false", "selective" or "true", as train.gradient_checkpointing has it once it is settled. Throws
// StateError.
Recompute recompute_of(std::string_view gradient_checkpointing);
std::string_view gradient_checkpointing_of(Recompute recompute);

}  // namespace convoy::architecture
