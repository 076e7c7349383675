// SPDX-License-Identifier: Apache-2.0
//
// The memory of an engine that generates, for a model of which only config.json is known: bytes of
// the process on a CPU, of the device on a GPU.
#pragma once

#include <cstdint>
#include <string>

#include "convoy/model/architecture/decoder_spec.h"
#include "convoy/model/sizing/memory_estimate.h"

namespace convoy::sizing {

// The rows that an engine computes together at the most.
struct GenerationRows {
  int64_t rows = 16;
  int64_t row_tokens = 0;     // the longest row: prompt and answer
  int64_t step_tokens = 512;  // tokens of a step, of prompts and answers together
  int64_t kv_blocks = 0;      // blocks of keys and values; 0 = enough for all rows
  int64_t kv_bytes = 0;       // bound of their bytes; 0 = none
  bool int8_kv = false;
  bool keeps_kv = true;    // false: texts are scored, and a layer's keys end with the layer
  int64_t logit_rows = 0;  // rows of logits in memory together; 0 = one for each row
  bool operator==(const GenerationRows&) const = default;
};

struct GenerationRequest {
  std::string dtype = "bf16";         // fp32 or bf16
  std::string weights = "model";      // the linear maps' type; or int8, int4
  std::string quantization = "none";  // the format of the blocks' linear maps; or nf4, fp4, int8
  bool double_quant = false;
  GenerationRows rows = {};
  Hardware hardware = Hardware::Cpu;
  int64_t program_bytes = 0;
};

struct GenerationMemory {
  int64_t program_bytes = 0;  // code, libraries, data: what the process held before the model
  int64_t weight_bytes = 0;
  int64_t packed_bytes = 0;  // copies of weights, packed for products of few tokens
  int64_t kv_bytes = 0;      // keys and values of the longest rows
  int64_t state_bytes = 0;   // states of rows and of prefixes in layers with a recurrence
  int64_t step_bytes = 0;    // activations and logits of a step
  // Whole weights while they are coded or quantised; counts only if it is more than all later
  // memory.
  int64_t loading_bytes = 0;

  int64_t total_bytes() const;
  // Bounds the keys and values as the engine does where kv_blocks is auto: they take at most half
  // of the bytes that program and weights leave of `all_bytes`.
  void bound_kv(int64_t all_bytes);
  // "1.3 GiB = 150 MiB program + 513 MiB weights + ..."; parts that are nothing are left out.
  std::string text() const;
};

// The texts that the engine of a rank that trains draws together, of `texts` in all. More rows
// together fill the products of a step; each needs keys and values.
int64_t rows_of_drawing(int64_t texts, bool on_cpu);

GenerationMemory plan_generation(const architecture::DecoderSpec& model,
                                 const GenerationRequest& request);

}  // namespace convoy::sizing
