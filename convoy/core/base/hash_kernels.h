// SPDX-License-Identifier: Apache-2.0
//
// The loops behind hash.h, each once in plain C++ and once with the processor's own instructions;
// the same answers from all. Chosen when first used, by what the processor has. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace convoy {

// Takes `num_blocks` blocks of 64 bytes into the eight words of a SHA-256.
using Sha256Blocks = void (*)(uint32_t* state, const uint8_t* blocks, size_t num_blocks);
// The state is the complement of the sum.
using Crc32cBytes = uint32_t (*)(std::string_view bytes, uint32_t state);

struct HashKernels {
  std::string_view name;
  Sha256Blocks sha256;
  Crc32cBytes crc32c;
};

const HashKernels& portable_hash_kernels();
// Those of the processor where it has them; each of the two alone, as SHA came ten years after CRC.
const HashKernels& best_hash_kernels();

}  // namespace convoy
