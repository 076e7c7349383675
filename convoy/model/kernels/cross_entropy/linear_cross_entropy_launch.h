// SPDX-License-Identifier: Apache-2.0
//
// The arguments that the host passes to the kernels of linear_cross_entropy_cuda.cu. Pointers are
// addresses on the GPU.
#pragma once

#include <stdint.h>

namespace convoy::kernels::gpu {

struct CrossEntropyLaunch {
  float* logits = nullptr;  // [rows, vocab]; overwritten by gradients
  const int64_t* labels = nullptr;
  float* nll = nullptr;
  const float* weights = nullptr;  // weights of each row's gradients; null: 1 for all
  uint8_t* correct = nullptr;      // bool: the label has the first of the greatest logits
  uint64_t rows = 0;
  uint64_t vocab = 0;
  // Rows may be read by vectors: kLogitsTogether divides the vocabulary, 16 divides the address.
  uint32_t vectors = 0;
  // Above 0: the logits came from a soft cap of 1 / inverse_cap, and gradients are multiplied by
  // its slope, 1 - (logit * inverse_cap)^2.
  float inverse_cap = 0;
};

// Neighbouring logits that a thread takes at a time, so that two loads of 16 bytes are in flight.
inline constexpr int kLogitsTogether = 8;

struct ScaleLaunch {
  const void* from = nullptr;
  void* to = nullptr;
  const float* factor = nullptr;
  uint64_t count = 0;
  uint64_t num_vectors = 0;  // kLogitsTogether elements each
};

}  // namespace convoy::kernels::gpu
