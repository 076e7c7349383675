// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/sizing/training_request.h"

#include "convoy/core/settings/strategies.h"

namespace convoy::sizing {
namespace {

// Bytes of both moments and their scales per block of 256 (optim/state_format).
int64_t moment_bytes_of_256(const std::string& type) {
  if (type == "int8") return 520;
  return type == "bf16" ? 1024 : 2048;
}

}  // namespace

EstimateRequest request_in(const settings::TrainSettings& settings, const Machine& machine,
                           const std::string& dtype) {
  const settings::TrainingSettings& train = settings.train;
  EstimateRequest request{
      .mode = settings.tuning.mode,
      .quantization = settings.tuning.quantization.format(settings.tuning.mode == "qlora"),
      .double_quant = settings.tuning.quantization.double_quant,
      .dtype = dtype,
      .lora_rank = settings.tuning.lora.r,
      .dora = settings.tuning.lora.use_dora,
      .drops_dora = settings.tuning.lora.dropout > 0,
      .sharing = sharing_of(settings::strategy_for(settings.parallel.strategy, machine.devices)),
      .ranks = machine.devices,
      .batch_rows = train.batch_size.value.value_or(1),
      .row_tokens = settings.model.max_seq_len,
      .accumulates = train.grad_accum.value.value_or(2) > 1,
      .recompute = train.gradient_checkpointing == "auto"
                       ? architecture::Recompute::Blocks
                       : architecture::recompute_of(train.gradient_checkpointing),
      .keep_whole_below = settings.parallel.keep_whole_below,
      .bucket_bytes = settings.parallel.bucket_mb << 20,
      .moment_bytes_of_256 = moment_bytes_of_256(train.moment_type()),
      .has_masters = train.optimizer.master_weights == "fp32",
      .pages_moments = train.optim.starts_with("paged_"),
      .offloads_inputs = train.activation_offload == "cpu",
      .hardware = machine.hardware};
  if (settings.task_facts().data == settings::TaskData::Rollouts) {
    request.texts_of_row = settings.rollout.samples;
    request.micro_batches = train.grad_accum.value.value_or(1);
    request.keeps_reference = settings.keeps_reference();
    request.device_bytes = machine.device_bytes;
  }
  const config::NameList& targets = settings.tuning.lora.target_modules;
  if (targets.names != std::vector<std::string>{"auto"} &&
      targets.names != std::vector<std::string>{"all-linear"})
    request.lora_targets = targets.names;
  return request;
}

void choose_sharing(const architecture::DecoderSpec& model, const settings::TrainSettings& settings,
                    const Machine& machine, EstimateRequest& request) {
  if (settings.parallel.strategy != "auto" || machine.devices <= 1) return;
  for (const settings::StrategyFacts& strategy : settings::strategies_of_processes()) {
    request.sharing = sharing_of(strategy);
    if (estimate_memory(model, request).total_bytes() <= machine.device_bytes) return;
  }
}

void settle_recompute(const architecture::DecoderSpec& model,
                      const settings::TrainSettings& settings, int64_t device_bytes,
                      EstimateRequest& request) {
  if (settings.train.gradient_checkpointing == "auto")
    request.recompute = choose_recompute(model, request, device_bytes);
}

}  // namespace convoy::sizing
