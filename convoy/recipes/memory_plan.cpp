// SPDX-License-Identifier: Apache-2.0
#include "convoy/recipes/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "convoy/device/memory.h"
#include "convoy/nn/linear.h"
#include "convoy/recipes/effective_batch.h"
#include "convoy/telemetry/progress.h"

namespace convoy::recipes {
namespace {

constexpr int64_t kFloatBytes = 4;

int64_t share(int64_t bytes, int ranks) { return (bytes + ranks - 1) / ranks; }

// The parameters of a unit that have one type and are all trained or all frozen: what travels as
// one (parallel/sharded).
struct Part {
  int64_t elements = 0;
  int64_t element_bytes = 0;
  bool trained = false;
  bool beside_frozen = false;

  int64_t bytes() const { return elements * element_bytes; }
};

std::vector<Part> parts_of(const nn::Unit& unit) {
  std::map<std::pair<bool, at::ScalarType>, Part> parts;
  for (const bool trained : {false, true})
    for (const nn::NamedTensor& parameter : trained ? unit.trained : unit.frozen) {
      Part& part = parts[{trained, parameter.value.scalar_type()}];
      part.elements += parameter.value.numel();
      part.element_bytes = static_cast<int64_t>(parameter.value.element_size());
      part.trained = trained;
      part.beside_frozen = trained && !unit.frozen.empty();
    }
  std::vector<Part> list;
  for (const auto& [key, part] : parts) list.push_back(part);
  return list;
}

// Of the frozen weights that products run packed.
int64_t packed_bytes(const nn::Unit& unit) {
  int64_t bytes = 0;
  for (const nn::Linear* linear : unit.linears)
    if (linear->name() != "lm_head" && !linear->weight().requires_grad())
      bytes += linear->weight().numel() * static_cast<int64_t>(linear->weight().element_size());
  return bytes;
}

int64_t sum_of_largest(std::vector<int64_t> values, size_t count) {
  std::sort(values.rbegin(), values.rend());
  int64_t sum = 0;
  for (size_t index = 0; index < std::min(count, values.size()); ++index) sum += values[index];
  return sum;
}

// Elements per token.
struct BlockWidths {
  int64_t kept = 0;     // from forward to backward
  int64_t at_work = 0;  // more while backward is in the block
};

// By what the ops of nn/decoder_block.cpp save: the inputs of both norms, the input of each linear,
// queries, keys and values as attention reads them, gate and up.
BlockWidths widths_of(nn::CausalLm& model) {
  const int64_t blocks = std::max<int64_t>(model.num_layers(), 1);
  int64_t kept = 2 * model.hidden_size();
  int64_t ffn = 0;
  int64_t rank = 0;
  int64_t in_blocks = 0;
  for (const nn::Linear* linear : model.block_linears()) {
    const std::string& name = linear->name();
    const auto is = [&](const char* end) { return name.ends_with(end); };
    if (is(".q_proj") || is(".gate_proj") || is(".o_proj") || is(".down_proj"))
      in_blocks += linear->in_features();
    if (is(".q_proj") || is(".k_proj") || is(".v_proj") || is(".gate_proj") || is(".up_proj"))
      in_blocks += linear->out_features();
    if (is(".down_proj")) ffn = std::max(ffn, linear->in_features());
    for (const nn::NamedTensor& leaf : linear->adapter_leaves())
      if (leaf.value.dim() == 2) rank += std::min(leaf.value.size(0), leaf.value.size(1)) / 2;
  }
  kept += (in_blocks + rank) / blocks;
  return {.kept = kept, .at_work = 3 * ffn + 2 * model.hidden_size()};
}

// Of the micro-batch of a rank that has most.
int64_t largest_micro_batch_tokens(const settings::TrainSettings& settings,
                                   const data::TokenDataset& rows) {
  if (settings.train.packing) return settings.train.batch_size * settings.model.max_seq_len;
  std::vector<int64_t> lengths;
  for (int64_t row = 0; row < rows.num_rows(); ++row) lengths.push_back(rows.length_tokens(row));
  return sum_of_largest(std::move(lengths), static_cast<size_t>(settings.train.batch_size));
}

void plan_activations(const MemoryQuestion& question, bool on_cpu, MemoryPlan& plan) {
  nn::CausalLm& model = question.model;
  const at::Tensor& head = model.head().weight();
  const auto element_bytes = static_cast<int64_t>(head.element_size());
  const int64_t tokens = question.micro_batch_tokens;
  const int64_t layers = model.num_layers();
  const BlockWidths widths = widths_of(model);
  const int64_t block = tokens * (widths.kept + widths.at_work) * element_bytes;
  const int64_t stored = question.recompute_blocks
                             ? layers * tokens * model.hidden_size() * element_bytes
                             : (layers - 1) * tokens * widths.kept * element_bytes;
  plan.activation_bytes = stored + block;

  // Chunks of kernels/cross_entropy.
  constexpr int64_t kLogitBytes = 128 << 20;
  constexpr int64_t kMostRows = 256;
  const int64_t vocab = model.vocab_size();
  const int64_t rows =
      std::min({tokens, on_cpu ? kMostRows : tokens, kLogitBytes / (vocab * kFloatBytes) + 1});
  const int64_t logits = rows * vocab * kFloatBytes;
  const int64_t hidden = tokens * model.hidden_size() * (kFloatBytes + 2 * element_bytes);
  const bool trains = head.requires_grad();
  const int64_t gradient = trains ? head.numel() * (kFloatBytes + element_bytes) : 0;
  // Logits are gone when the first block's backward begins.
  plan.head_bytes = hidden + gradient + std::max<int64_t>(0, logits - block);
}

}  // namespace

int64_t MemoryPlan::total_bytes() const {
  return program_bytes + weight_bytes + packed_bytes + gradient_bytes + optimizer_bytes +
         exchange_bytes + copy_bytes + activation_bytes + head_bytes;
}

std::string MemoryPlan::text() const {
  const std::array<std::pair<const char*, int64_t>, 9> parts = {{{"program", program_bytes},
                                                                 {"weights", weight_bytes},
                                                                 {"packed copies", packed_bytes},
                                                                 {"gradients", gradient_bytes},
                                                                 {"optimizer", optimizer_bytes},
                                                                 {"exchange", exchange_bytes},
                                                                 {"copy to save", copy_bytes},
                                                                 {"activations", activation_bytes},
                                                                 {"head", head_bytes}}};
  std::string text = telemetry::bytes_text(total_bytes());
  const char* sign = " = ";
  for (const auto& [name, bytes] : parts) {
    if (bytes == 0) continue;
    text += fmt::format("{}{} {}", std::exchange(sign, " + "), telemetry::bytes_text(bytes), name);
  }
  return text;
}

nlohmann::ordered_json MemoryPlan::to_json() const {
  return {{"program_bytes", program_bytes},     {"weight_bytes", weight_bytes},
          {"packed_bytes", packed_bytes},       {"gradient_bytes", gradient_bytes},
          {"optimizer_bytes", optimizer_bytes}, {"exchange_bytes", exchange_bytes},
          {"copy_bytes", copy_bytes},           {"activation_bytes", activation_bytes},
          {"head_bytes", head_bytes},           {"total_bytes", total_bytes()}};
}

int64_t memory_beside(nn::CausalLm& model, int replicas) {
  if (!model.device().is_cpu()) return 0;
  int64_t values_bytes = 0;
  for (const nn::NamedTensor& parameter : model.parameters())
    values_bytes += static_cast<int64_t>(parameter.value.storage().nbytes());
  return std::max<int64_t>(device::process_memory().resident_bytes - replicas * values_bytes, 0);
}

MemoryQuestion memory_question(const settings::TrainSettings& settings, nn::CausalLm& model,
                               const data::TokenDataset& rows,
                               const comm::RankEnvironment& environment) {
  const bool of_node = settings.parallel.shard_over == "node";
  return {.model = model,
          .ranks = of_node ? environment.local_world : environment.world,
          .keep_whole_below = settings.parallel.keep_whole_below,
          .bucket_bytes = settings.parallel.bucket_mb << 20,
          .accumulates = wanted_global_batch(settings.train, environment.world) >
                         settings.train.batch_size * environment.world,
          .micro_batch_tokens = largest_micro_batch_tokens(settings, rows),
          .recompute_blocks = settings.train.gradient_checkpointing,
          .copies_to_save = settings.train.async_save,
          .reshard_after_forward = settings.parallel.reshard_after_forward,
          .only_sharded = of_node || settings.parallel.offload != "none",
          .replicas = environment.replicas,
          .program_bytes = memory_beside(model, environment.replicas)};
}

MemoryPlan plan_memory(const MemoryQuestion& question, const std::string& strategy) {
  const bool cuts_gradients = strategy == "zero2" || strategy == "zero3";
  const bool cuts_states = cuts_gradients || strategy == "zero1";
  const int owners = cuts_states ? question.ranks : 1;
  const bool on_cpu = question.model.device().is_cpu();
  MemoryPlan plan{.program_bytes = question.program_bytes};
  std::vector<int64_t> gathered;
  std::vector<int64_t> packed;
  std::vector<int64_t> whole_gradients;
  for (const nn::Unit& unit : question.model.units()) {
    int64_t travelling = 0;
    for (const Part& part : parts_of(unit)) {
      const bool travels =
          strategy == "zero3" && !part.beside_frozen && part.elements >= question.keep_whole_below;
      plan.weight_bytes += travels ? share(part.bytes(), question.ranks) : part.bytes();
      if (travels) travelling += part.bytes();
      if (!part.trained) continue;
      const int64_t gradient = part.elements * kFloatBytes;
      const int64_t states = gradient * (part.element_bytes < kFloatBytes ? 3 : 2);
      plan.optimizer_bytes += share(states, owners);
      if (question.copies_to_save && on_cpu)
        plan.copy_bytes +=
            share(states, owners) + (travels ? share(part.bytes(), question.ranks) : part.bytes());
      plan.gradient_bytes += share(gradient, owners);
      whole_gradients.push_back(gradient);
    }
    gathered.push_back(travelling);
    packed.push_back(on_cpu ? packed_bytes(unit) : 0);
  }
  // The unit in use and the next one; packed copies are those of the unit in use.
  plan.exchange_bytes +=
      sum_of_largest(gathered, question.reshard_after_forward ? 2 : gathered.size());
  plan.packed_bytes = sum_of_largest(packed, strategy == "zero3" ? 1 : packed.size());
  // Gloo sums in a copy of a bucket.
  if (strategy == "ddp" && question.ranks > 1 && on_cpu)
    plan.exchange_bytes += std::min(plan.gradient_bytes, question.bucket_bytes);
  // Whole ones wait for the last micro-batch under zero1.
  const bool keeps_whole = strategy == "zero1" && question.accumulates;
  if (keeps_whole) plan.gradient_bytes += sum_of_largest(whole_gradients, SIZE_MAX);
  // Two under way, and the one that backward fills; over Gloo what comes in lies beside.
  if (cuts_states && !keeps_whole) plan.exchange_bytes += sum_of_largest(whole_gradients, 3);
  if (cuts_states && question.ranks > 1 && on_cpu)
    plan.exchange_bytes += sum_of_largest(whole_gradients, 2);
  plan_activations(question, on_cpu, plan);
  for (int64_t* part : {&plan.weight_bytes, &plan.packed_bytes, &plan.gradient_bytes,
                        &plan.optimizer_bytes, &plan.activation_bytes, &plan.head_bytes})
    *part *= question.replicas;
  return plan;
}

StrategyChoice choose_strategy(const MemoryQuestion& question, int64_t usable_bytes) {
  if (question.ranks == 1) return {"none", "there is one rank", true};
  const int64_t allowed_bytes = usable_bytes - usable_bytes / 10;
  std::string refused;
  int64_t last_bytes = 0;
  for (const char* strategy : {"ddp", "zero1", "zero2", "zero3"}) {
    if (question.only_sharded && std::string_view(strategy) == "ddp") continue;
    last_bytes = plan_memory(question, strategy).total_bytes();
    if (usable_bytes > 0 && last_bytes > allowed_bytes) {
      refused += fmt::format("{}{} wants {}", refused.empty() ? "" : ", ", strategy,
                             telemetry::bytes_text(last_bytes));
      continue;
    }
    if (refused.empty())
      return {strategy,
              usable_bytes > 0
                  ? fmt::format("it wants {} a rank of {}", telemetry::bytes_text(last_bytes),
                                telemetry::bytes_text(usable_bytes))
                  : "how much memory a rank has is unknown",
              true};
    return {strategy,
            fmt::format("{}, it {}, and a rank has {}", refused, telemetry::bytes_text(last_bytes),
                        telemetry::bytes_text(usable_bytes)),
            true};
  }
  return {
      "zero3",
      fmt::format("none fits: {}, and a rank has {}", refused, telemetry::bytes_text(usable_bytes)),
      false};
}

}  // namespace convoy::recipes
