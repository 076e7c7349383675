// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/sizing/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "convoy/core/telemetry/progress.h"

namespace convoy::sizing {

using architecture::Recompute;

namespace {

constexpr int64_t kFloatBytes = 4;

int64_t share(int64_t bytes, int ranks) { return (bytes + ranks - 1) / ranks; }

// Small parameters stay outside the rule (optim::StateFormat::smallest_int8); their extra bytes are
// too few to count.
int64_t state_bytes(const MemoryQuestion& question, const ParameterPart& part) {
  constexpr int64_t kMomentBlock = 256;
  const int64_t wide_bytes = part.elements * kFloatBytes;
  const bool has_master = question.has_masters && part.bytes < wide_bytes;
  const bool here = question.shape.on_cpu || !question.pages_moments;
  return (here ? part.elements * question.moment_bytes_of_256 / kMomentBlock : 0) +
         (has_master ? wide_bytes : 0);
}

int64_t sum_of_largest(std::vector<int64_t> values, size_t count) {
  std::sort(values.rbegin(), values.rend());
  int64_t sum = 0;
  for (size_t index = 0; index < std::min(count, values.size()); ++index) sum += values[index];
  return sum;
}

// The rows of a chunk of kernels/cross_entropy: the CPU's own, or the chunk of head_products.h.
int64_t rows_of_logits(const TrainingShape& shape, int64_t tokens) {
  constexpr int64_t kLogitBytesOnCpu = 128 << 20, kMostRowsOnCpu = 256;
  constexpr int64_t kLogitBytes = 256 << 20, kMostRows = 4096;
  const int64_t row_bytes = shape.vocab * kFloatBytes;
  if (shape.on_cpu) return std::min({tokens, kMostRowsOnCpu, kLogitBytesOnCpu / row_bytes + 1});
  const int64_t least = shape.trains_head ? shape.hidden : 1;
  return std::min({tokens, kMostRows, std::max(kLogitBytes / row_bytes, least)});
}

bool keeps_packed_copies(const MemoryQuestion& question) {
  constexpr int64_t kManyTokens = 256;  // from here on kernels/frozen_linear keeps no packed copy
  const int64_t least =
      question.least_batch_tokens > 0 ? question.least_batch_tokens : question.micro_batch_tokens;
  return least < kManyTokens;
}

// Returns the bytes that backward frees block by block.
int64_t plan_activations(const MemoryQuestion& question, MemoryPlan& plan) {
  const TrainingShape& shape = question.shape;
  const int64_t tokens = question.micro_batch_tokens;
  const int64_t block = tokens * (shape.kept + shape.at_work) * shape.element_bytes;
  const int64_t inputs = question.offloads_inputs && !shape.on_cpu ? 1 : shape.layers;
  const int64_t kept =
      shape.kept - (question.recompute == Recompute::Selective ? shape.recomputed : 0);
  const int64_t stored = question.recompute == Recompute::Blocks
                             ? inputs * tokens * shape.hidden * shape.element_bytes
                             : (shape.layers - 1) * tokens * kept * shape.element_bytes;
  plan.activation_bytes = stored + block;

  const int64_t logits = rows_of_logits(shape, tokens) * shape.vocab * kFloatBytes;
  const int64_t hidden = tokens * shape.hidden * (kFloatBytes + 2 * shape.element_bytes);
  const int64_t gradient =
      shape.trains_head ? shape.head_elements * (kFloatBytes + shape.element_bytes) : 0;
  // Logits are gone when the first block's backward begins.
  plan.head_bytes = hidden + gradient + std::max<int64_t>(0, logits - block) + question.loss_bytes;
  return std::max<int64_t>(0, stored);
}

}  // namespace

int64_t MemoryPlan::total_bytes() const {
  return std::max(drawing_total_bytes(), learning_total_bytes());
}

int64_t MemoryPlan::drawing_total_bytes() const {
  return program_bytes + weight_bytes + reference_bytes + teacher_bytes + packed_bytes +
         gradient_bytes + optimizer_bytes + exchange_bytes + drawing_bytes;
}

int64_t MemoryPlan::learning_total_bytes() const {
  return drawing_total_bytes() - drawing_bytes + activation_bytes + head_bytes;
}

std::string MemoryPlan::text() const {
  const int64_t learning_bytes = activation_bytes + head_bytes;
  const bool draws_more = drawing_bytes > learning_bytes;
  const std::array<std::pair<const char*, int64_t>, 11> parts = {
      {{"program", program_bytes},
       {"weights", weight_bytes},
       {"reference", reference_bytes},
       {"packed copies", packed_bytes},
       {"gradients", gradient_bytes},
       {"optimizer", optimizer_bytes},
       {"exchange", exchange_bytes},
       {"teacher", teacher_bytes},
       {"activations", draws_more ? 0 : activation_bytes},
       {"head", draws_more ? 0 : head_bytes},
       {"keys and values of texts", draws_more ? drawing_bytes : 0}}};
  std::string text = telemetry::bytes_text(total_bytes());
  const char* sign = " = ";
  for (const auto& [name, bytes] : parts) {
    if (bytes == 0) continue;
    text += fmt::format("{}{} {}", std::exchange(sign, " + "), telemetry::bytes_text(bytes), name);
  }
  if (drawing_bytes == 0) return text;
  return text + (draws_more ? fmt::format("; {} while it learns from them",
                                          telemetry::bytes_text(learning_total_bytes()))
                            : fmt::format("; {} while texts are drawn, {} of them keys and values",
                                          telemetry::bytes_text(drawing_total_bytes()),
                                          telemetry::bytes_text(drawing_bytes)));
}

nlohmann::ordered_json MemoryPlan::to_json() const {
  nlohmann::ordered_json json = {
      {"program_bytes", program_bytes},       {"weight_bytes", weight_bytes},
      {"packed_bytes", packed_bytes},         {"gradient_bytes", gradient_bytes},
      {"optimizer_bytes", optimizer_bytes},   {"exchange_bytes", exchange_bytes},
      {"activation_bytes", activation_bytes}, {"head_bytes", head_bytes},
      {"total_bytes", total_bytes()}};
  if (reference_bytes > 0) json["reference_bytes"] = reference_bytes;
  if (drawing_bytes > 0) json["drawing_bytes"] = drawing_bytes;
  if (teacher_bytes > 0) json["teacher_bytes"] = teacher_bytes;
  return json;
}

MemoryPlan plan_memory(const MemoryQuestion& question, const StateSharing& sharing) {
  const int owners = sharing.cuts_states ? question.ranks : 1;
  const bool on_cpu = question.shape.on_cpu;
  MemoryPlan plan{.program_bytes = question.program_bytes,
                  .reference_bytes = question.replicas * question.reference_bytes,
                  .drawing_bytes = question.replicas * question.drawing_bytes,
                  .teacher_bytes = question.replicas * question.teacher_bytes};
  // One rank with one micro-batch a step keeps gradients in the type in which backward made them.
  const bool is_alone = sharing.strategy == "none" && !question.accumulates;
  std::vector<int64_t> gathered;
  std::vector<int64_t> packed;
  std::vector<int64_t> whole_gradients;
  for (const UnitShape& unit : question.shape.units) {
    int64_t travelling = 0;
    for (const ParameterPart& part : unit.parts) {
      const bool travels =
          sharing.cuts_values && !part.beside_frozen && part.elements >= question.keep_whole_below;
      plan.weight_bytes += travels ? share(part.bytes, question.ranks) : part.bytes;
      if (travels) travelling += part.bytes;
      if (!part.trained) continue;
      const int64_t gradient = is_alone ? part.bytes : part.elements * kFloatBytes;
      const int64_t states = state_bytes(question, part);
      plan.optimizer_bytes += share(states, owners);
      plan.gradient_bytes += share(gradient, owners);
      whole_gradients.push_back(gradient);
    }
    gathered.push_back(travelling);
    packed.push_back(unit.packed_bytes);
  }
  // The unit in use and the next ones are gathered; only the unit in use has packed copies.
  const int64_t prefetch = question.prefetch_blocks > 0 ? question.prefetch_blocks : on_cpu ? 1 : 2;
  const auto at_a_time = static_cast<size_t>(1 + prefetch);
  plan.exchange_bytes +=
      sum_of_largest(gathered, question.reshard_after_forward ? at_a_time : gathered.size());
  plan.packed_bytes = question.shape.unfolded_bytes;
  if (keeps_packed_copies(question))
    plan.packed_bytes += sum_of_largest(packed, sharing.cuts_values ? 1 : packed.size());
  // Gloo sums in a copy of a bucket.
  const bool exchanges_on_cpu = sharing.spans_processes && question.ranks > 1 && on_cpu;
  if (exchanges_on_cpu && !sharing.cuts_states)
    plan.exchange_bytes += std::min(plan.gradient_bytes, question.bucket_bytes);
  const bool keeps_whole = sharing.cuts_states && !sharing.cuts_gradients && question.accumulates;
  if (keeps_whole) plan.gradient_bytes += sum_of_largest(whole_gradients, SIZE_MAX);
  // The sums of two units are under way while backward fills a third; Gloo receives the two in
  // buffers of their own.
  int64_t gradients_under_way = 0;
  if (sharing.cuts_states && !keeps_whole)
    gradients_under_way += sum_of_largest(whole_gradients, 3);
  if (exchanges_on_cpu && sharing.cuts_states)
    gradients_under_way += sum_of_largest(whole_gradients, 2);
  const int64_t freed = plan_activations(question, plan);
  // The largest gradient, of a tied head, is sent when backward has reached the embedding, and so
  // has freed activations.
  if (question.shape.tied_head) gradients_under_way -= std::min(gradients_under_way, freed);
  plan.exchange_bytes += gradients_under_way;
  // Each gradient takes memory of activations that backward has just freed.
  if (is_alone) plan.gradient_bytes = std::max<int64_t>(0, plan.gradient_bytes - freed);
  for (int64_t* part : {&plan.weight_bytes, &plan.packed_bytes, &plan.gradient_bytes,
                        &plan.optimizer_bytes, &plan.activation_bytes, &plan.head_bytes})
    *part *= question.replicas;
  if (question.device_bytes > 0) {
    const int64_t state_bytes = plan.drawing_total_bytes() - plan.drawing_bytes;
    plan.drawing_bytes =
        std::min(plan.drawing_bytes, std::max<int64_t>(question.device_bytes - state_bytes, 0) / 2);
  }
  return plan;
}

Recompute choose_recompute(MemoryQuestion question, const StateSharing& sharing,
                           int64_t usable_bytes) {
  for (const Recompute recompute : {Recompute::Nothing, Recompute::Selective}) {
    question.recompute = recompute;
    const int64_t bytes = plan_memory(question, sharing).total_bytes();
    if (usable_bytes <= 0 || bytes <= usable_bytes - usable_bytes / 10) return recompute;
  }
  return Recompute::Blocks;
}

StrategyChoice choose_strategy(const MemoryQuestion& question,
                               const std::vector<StateSharing>& candidates, int64_t usable_bytes) {
  if (question.ranks == 1) return {"none", "there is one rank", true};
  const int64_t allowed_bytes = usable_bytes - usable_bytes / 10;
  std::string refused;
  int64_t last_bytes = 0;
  for (const StateSharing& candidate : candidates) {
    if (question.only_sharded && !candidate.cuts_states) continue;
    const std::string& strategy = candidate.strategy;
    last_bytes = plan_memory(question, candidate).total_bytes();
    if (usable_bytes > 0 && last_bytes > allowed_bytes) {
      refused += fmt::format("{}{} needs {}", refused.empty() ? "" : ", ", strategy,
                             telemetry::bytes_text(last_bytes));
      continue;
    }
    if (refused.empty())
      return {strategy,
              usable_bytes > 0
                  ? fmt::format("it needs {} a rank of {}", telemetry::bytes_text(last_bytes),
                                telemetry::bytes_text(usable_bytes))
                  : "how much memory a rank has is unknown",
              true};
    return {strategy,
            fmt::format("{}, it {}, and a rank has {}", refused, telemetry::bytes_text(last_bytes),
                        telemetry::bytes_text(usable_bytes)),
            true};
  }
  return {
      candidates.back().strategy,
      fmt::format("none fits: {}, and a rank has {}", refused, telemetry::bytes_text(usable_bytes)),
      false};
}

}  // namespace convoy::sizing
