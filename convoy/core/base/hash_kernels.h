// SPDX-License-Identifier: Apache-2.0
//
// The loops behind hash.h: each once in plain C++ and once with the processor's own instructions,
// with equal results. The loops are chosen at their first use, by the processor's features.
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace convoy {

// Adds `num_blocks` blocks of 64 bytes to the eight state words of a SHA-256.
using Sha256Blocks = void (*)(uint32_t* state, const uint8_t* blocks, size_t num_blocks);
// `state` is the complement of the checksum.
using Crc32cBytes = uint32_t (*)(std::string_view bytes, uint32_t state);

struct HashKernels {
  std::string_view name;
  Sha256Blocks sha256;
  Crc32cBytes crc32c;
};

const HashKernels& portable_hash_kernels();
// The kernels that use the processor's instructions where it has them. SHA and CRC are chosen
// separately, because SHA instructions came ten years after CRC instructions.
const HashKernels& best_hash_kernels();

}  // namespace convoy
