// SPDX-License-Identifier: Apache-2.0
//
// The memory of a training that has not begun, for a model of which only config.json is known. It
// is computed by the formula of memory_plan.h, so that it cannot differ from the plan of the run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/model/architecture/decoder_spec.h"
#include "convoy/model/sizing/memory_plan.h"

namespace convoy::sizing {

enum class Hardware { Cpu, Gpu };

struct EstimateRequest {
  std::string mode = "lora";  // full, lora or qlora
  // The format of the frozen weights of blocks: none, nf4, fp4 or int8. With qlora none means nf4.
  std::string quantization = "none";
  bool double_quant = false;   // the scales of nf4 and fp4 in 8 bits
  std::string dtype = "bf16";  // type of weights and activations: bf16 or fp32
  int64_t lora_rank = 32;
  bool dora = false;        // for lora and qlora
  bool drops_dora = false;  // tuning.lora.dropout is above 0, so DoRA keeps the dropped inputs
  // Endings of names; empty = all linear maps of blocks.
  std::vector<std::string> lora_targets = {};
  StateSharing sharing = {};
  int ranks = 1;
  int64_t batch_rows = 1;  // in a micro-batch
  int64_t row_tokens = 512;
  bool accumulates = false;
  int64_t micro_batches = 1;  // a rank's share of a step
  // Rows are problems, each of which gets this many texts of row_tokens tokens, problem included;
  // 0: rows are texts themselves.
  int64_t texts_of_row = 0;
  bool keeps_reference = false;  // a second model of the same sizes beside the one that trains
  int64_t device_bytes = 0;      // as in MemoryQuestion
  architecture::Recompute recompute = architecture::Recompute::Nothing;
  int64_t keep_whole_below = 100'000;
  int64_t bucket_bytes = 25 << 20;
  // Settings of the optimizer and of block inputs, as for plan_memory(). The defaults are AdamW
  // with moments in fp32.
  int64_t moment_bytes_of_256 = 2048;
  bool has_masters = true;
  bool pages_moments = false;
  bool offloads_inputs = false;
  Hardware hardware = Hardware::Gpu;
};

TrainingShape training_shape(const architecture::DecoderSpec& model,
                             const EstimateRequest& request);

// The name by which the functions below identify a linear map: the last part of its module's name,
// "q_proj". Attention's gate_proj is "output_gate", because the feed-forward has a gate_proj too.
std::string_view map_name(std::string_view module);

// Elements that ops keep of each token until backward, around a linear map of a block.
struct MapWidths {
  int64_t kept = 0;
  // The part of `kept` that is outputs of norms and activations, which are computed again with
  // Recompute::Selective; counted where a norm precedes the maps of queries and of the gate.
  int64_t recomputed = 0;
};
MapWidths widths_around(std::string_view map, int64_t out, int64_t in);

// Is `map` the first of several maps at one input? The input is kept once.
bool is_first_map(std::string_view map);
// Does `map` read the input of another map before it?
bool shares_its_input(std::string_view map);

// Elements of each token that backward of a block of Gated DeltaNet has at work: gradients, and the
// states at the beginnings of chunks in fp32.
int64_t delta_net_at_work(const architecture::DeltaNetSpec& sizes, int64_t element_bytes);

int64_t count_parameters(const architecture::DecoderSpec& model);

// The least recomputation with which the training fits (choose_recompute in memory_plan.h). Throws
// as estimate_memory() does.
architecture::Recompute choose_recompute(const architecture::DecoderSpec& model,
                                         const EstimateRequest& request, int64_t device_bytes);

// The memory of one rank. Throws ConfigError for an unknown mode, quantization or dtype.
MemoryPlan estimate_memory(const architecture::DecoderSpec& model, const EstimateRequest& request);

}  // namespace convoy::sizing
