// SPDX-License-Identifier: Apache-2.0
//
// The memory of each rank of a training under a strategy: one formula for the plan of a run and for
// the estimate of a model that is not loaded. Bytes are counted for the rank that holds most.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convoy/model/architecture/recompute.h"
#include "convoy/model/sizing/training_shape.h"

namespace convoy::sizing {

// Code of LibTorch that the steps of a training on CPUs bring into memory after its plan: 9 to 11
// MiB for every task, mode and type, 17 for task classify, which has read less before.
inline constexpr int64_t kStepCodeBytes = int64_t{10} << 20;

struct MemoryPlan {
  int64_t program_bytes = 0;    // code, libraries, data: what the process held before the model
  int64_t weight_bytes = 0;     // values that stay
  int64_t reference_bytes = 0;  // a reference model beside the one that trains
  int64_t packed_bytes = 0;     // copies of frozen weights, packed for products of few tokens
  // Gradients are fp32. Where nothing is summed, they have the type of the weights, and only the
  // part counts that exceeds the activations that backward frees meanwhile.
  int64_t gradient_bytes = 0;
  int64_t optimizer_bytes = 0;   // moments, and master weights where values are bf16
  int64_t exchange_bytes = 0;    // gathered units, gradients on their way between ranks
  int64_t activation_bytes = 0;  // kept for backward, and the working memory of one block
  int64_t head_bytes = 0;        // logits and their gradients
  // Keys and values of the texts that the model draws before a step. They are given back before the
  // forward pass, so only the larger of them and of activations with the head counts.
  int64_t drawing_bytes = 0;
  int64_t teacher_bytes = 0;  // a frozen model beside the one that trains

  int64_t total_bytes() const;
  int64_t drawing_total_bytes() const;   // while texts are drawn
  int64_t learning_total_bytes() const;  // while the model learns from them
  // "1.9 GiB = 210 MiB program + 988 MiB weights + ..."; parts that are nothing are left out. Where
  // texts are drawn, the other half of a step and its bytes follow.
  std::string text() const;
  nlohmann::ordered_json to_json() const;
  bool operator==(const MemoryPlan&) const = default;
};

struct MemoryQuestion {
  TrainingShape shape = {};
  int ranks = 1;
  int64_t keep_whole_below = 0;
  int64_t bucket_bytes = 25 << 20;  // buckets hold gradients that are not cut
  bool accumulates = false;         // a step has several micro-batches
  int64_t micro_batch_tokens = 0;   // the largest micro-batch
  // Tokens of the smallest batch, evaluations included; 0 = as the largest. Products of few tokens
  // keep packed copies of frozen weights (kernels/frozen_linear).
  int64_t least_batch_tokens = 0;
  architecture::Recompute recompute = architecture::Recompute::Nothing;
  bool reshard_after_forward = true;
  int64_t prefetch_blocks = 0;  // 0: one on CPUs, else two
  bool only_sharded = false;    // the settings require a strategy that cuts states
  int replicas = 1;             // replicas of the model in this process (dp)
  // Settings of the optimizer: bytes of both moments of 256 elements, scales included; whether bf16
  // weights have fp32 masters; whether moments are kept on the host although the model is on a
  // device.
  int64_t moment_bytes_of_256 = 2048;
  bool has_masters = true;
  bool pages_moments = false;
  // Block inputs that recomputation keeps are kept on the host although the model is on a device.
  bool offloads_inputs = false;
  int64_t program_bytes = 0;
  int64_t reference_bytes = 0;  // as in MemoryPlan
  int64_t drawing_bytes = 0;    // keys and values of as many texts as may be drawn together
  // Memory of the device; 0 = unknown. Keys and values take at most half of what the state leaves
  // of it: with less, fewer texts are drawn together.
  int64_t device_bytes = 0;
  int64_t teacher_bytes = 0;  // as in MemoryPlan
  int64_t loss_bytes = 0;     // tensors of the size of logits that the loss holds beside them
};

// The state that ranks share under a strategy: each rank holds a piece of the state that is cut,
// and all of the other state.
struct StateSharing {
  std::string strategy = "none";  // its name
  bool spans_processes = false;   // false: one rank, or ranks that are threads of one process
  bool cuts_states = false;       // cuts the optimizer's states
  bool cuts_gradients = false;    // cut after every micro-batch; else kept whole until the last one
  bool cuts_values = false;       // cuts the parameters
};

// The sharing of a strategy. A template, because the table of strategies belongs to a layer that
// this layer does not include.
template <class Strategy>
StateSharing sharing_of(const Strategy& strategy) {
  return {.strategy = std::string(strategy.name),
          .spans_processes = strategy.spans_processes,
          .cuts_states = strategy.cuts_states,
          .cuts_gradients = strategy.cuts_gradients,
          .cuts_values = strategy.cuts_values};
}

template <class Strategies>
std::vector<StateSharing> sharings_of(const Strategies& strategies) {
  std::vector<StateSharing> sharings;
  for (const auto& strategy : strategies) sharings.push_back(sharing_of(strategy));
  return sharings;
}

// When ranks are threads of one process (replicas), the bytes are the bytes of the whole process.
MemoryPlan plan_memory(const MemoryQuestion& question, const StateSharing& sharing);

// The least recomputation with which the plan leaves a tenth of `usable_bytes`. Nothing is
// recomputed if `usable_bytes` is unknown; whole blocks are recomputed if no plan leaves a tenth.
architecture::Recompute choose_recompute(MemoryQuestion question, const StateSharing& sharing,
                                         int64_t usable_bytes);

struct StrategyChoice {
  std::string strategy;
  std::string reason;  // a sentence
  bool fits = true;
};

// The first of `candidates` whose plan leaves a tenth of `usable_bytes` (of one rank; 0 = unknown);
// none for one rank. Strategies with the least communication come first.
StrategyChoice choose_strategy(const MemoryQuestion& question,
                               const std::vector<StateSharing>& candidates, int64_t usable_bytes);

}  // namespace convoy::sizing
