// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/memory/memory_report.h"

#include <unordered_set>

#include "convoy/core/telemetry/progress.h"

namespace convoy::recipes {
namespace {

std::string what_to_lower(const settings::TrainSettings& settings) {
  std::string hint;
  if (settings.train.batch_rows() > 1)
    hint = fmt::format("lower train.batch_size (now {}; train.grad_accum makes up for it), or ",
                       settings.train.batch_rows());
  if (settings.train.gradient_checkpointing != "true")
    hint += "set train.gradient_checkpointing: true, or ";
  hint += fmt::format("lower model.max_seq_len (now {})", settings.model.max_seq_len);
  if (settings.tuning.mode == "full") hint += ", or train an adapter (tuning.mode: lora)";
  return hint;
}

}  // namespace

HeldMemory held_memory(nn::CausalLm* model, const optim::AdamW* optimizer) {
  std::unordered_set<const void*> counted;
  const auto bytes_of = [&counted](const at::Tensor& tensor) {
    return counted.insert(tensor.storage().unsafeGetStorageImpl()).second
               ? static_cast<int64_t>(tensor.storage().nbytes())
               : 0;
  };
  HeldMemory held;
  if (optimizer != nullptr) {
    for (const optim::OptimizedParameter& parameter : optimizer->parameters()) {
      held.trained_bytes += bytes_of(parameter.value);
      held.gradient_bytes += bytes_of(parameter.gradient);
    }
    for (const optim::NamedState& state : optimizer->state())
      held.optimizer_bytes += bytes_of(state.value);
  }
  if (model != nullptr)
    for (const nn::NamedTensor& parameter : model->parameters())
      held.frozen_bytes += bytes_of(parameter.value);
  return held;
}

IoError full_device(const std::string& device, const HeldMemory& held, int64_t peak_bytes,
                    const settings::TrainSettings& settings) {
  const int64_t known_bytes =
      held.frozen_bytes + held.trained_bytes + held.gradient_bytes + held.optimizer_bytes;
  const auto text = telemetry::bytes_text;
  return IoError(
      fmt::format(
          "{} is full: it holds {} of frozen weights, {} of trained weights, {} of gradients, "
          "{} of optimizer states, and at the peak held {} of activations and buffers",
          device, text(held.frozen_bytes), text(held.trained_bytes), text(held.gradient_bytes),
          text(held.optimizer_bytes), text(std::max<int64_t>(0, peak_bytes - known_bytes))),
      {.hint = what_to_lower(settings)});
}

}  // namespace convoy::recipes
