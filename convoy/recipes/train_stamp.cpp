// SPDX-License-Identifier: Apache-2.0
#include "convoy/recipes/train_stamp.h"

#include <charconv>

#include "convoy/base/error.h"
#include "convoy/base/hash.h"

namespace convoy::recipes {
namespace {

constexpr const char* kBatchSize = "batch_size";
constexpr const char* kGradAccum = "grad_accum";

void stamp_lora(checkpoint::Stamp& stamp, const adapters::LoraConfig& lora) {
  stamp.set("lora.r", lora.r);
  stamp.set("lora.alpha", fmt::format("{}", lora.alpha));
  stamp.set("lora.variant", lora.use_dora ? "dora" : lora.use_rslora ? "rslora" : "lora");
  stamp.set("lora.dropout", fmt::format("{}", lora.dropout));
  // Targets and patterns together: any of them changes which tensors there are.
  stamp.set("lora.targets", sha256_hex(lora.to_peft_json(lora.target_names)).substr(0, 16));
}

}  // namespace

checkpoint::Stamp train_stamp(const settings::TrainSettings& settings, const LoadedModel& base,
                              const data::EncodedSplits& splits, const std::string& dtype,
                              const data::BatchPlanConfig& batch) {
  checkpoint::Stamp stamp;
  stamp.set("backend", "cpu");
  stamp.set("dtype", dtype);
  stamp.set("quantisation", "none");
  stamp.set("tuning", settings.tuning.mode);
  if (base.lora) stamp_lora(stamp, base.lora->config());
  stamp.set("attention", "packed-causal");
  stamp.set("packing", settings.train.packing ? "on" : "off");
  stamp.set("max_seq_len", settings.model.max_seq_len);
  stamp.set("data", splits.train.content_hash());
  stamp.set("shuffle", settings.data.shuffle ? "on" : "off");
  stamp.set("seed", settings.seed);
  stamp.set("model", model_fingerprint(base.folder));
  stamp.set("tokenizer", base.tokenizer.content_hash());
  stamp.set("global_batch", batch.global_batch);
  // A change of these is the user's right: applied, recorded and said.
  stamp.set_informational("world_size", fmt::format("{}", batch.world_size));
  stamp.set_informational(kBatchSize, fmt::format("{}", settings.train.batch_size));
  stamp.set_informational(kGradAccum, fmt::format("{}", settings.train.grad_accum));
  stamp.set_informational("learning_rate", fmt::format("{}", settings.train.learning_rate));
  stamp.set_informational("lr_scheduler_type", settings.train.schedule.lr_scheduler_type);
  stamp.set_informational("weight_decay", fmt::format("{}", settings.train.weight_decay));
  stamp.set_informational("epochs", fmt::format("{}", settings.train.epochs));
  stamp.set_informational("steps", fmt::format("{}", settings.train.steps));
  return stamp;
}

std::optional<int64_t> kept_global_batch(const checkpoint::Stamp& saved,
                                         const settings::TrainSettings& settings,
                                         const std::vector<std::string>& forced) {
  for (const std::string& field : forced)
    if (field == "all" || field == "global_batch") return std::nullopt;
  const auto is = [&saved](const char* field, int64_t value) {
    const checkpoint::StampField* const found = saved.find(field);
    return found != nullptr && found->value == std::to_string(value);
  };
  const checkpoint::StampField* const global_batch = saved.find("global_batch");
  if (global_batch == nullptr || !is(kBatchSize, settings.train.batch_size) ||
      !is(kGradAccum, settings.train.grad_accum))
    return std::nullopt;
  int64_t rows = 0;
  const std::string& text = global_batch->value;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rows);
  if (error != std::errc() || end != text.data() + text.size() || rows < 1) return std::nullopt;
  return rows;
}

void restore_parameters(const std::vector<nn::NamedTensor>& parameters, const std::string& group,
                        const checkpoint::LoadedCheckpoint& loaded) {
  const ErrorPlace place{.file = loaded.folder.string()};
  const auto found = loaded.state.groups.find(group);
  if (found == loaded.state.groups.end())
    throw CheckpointError(fmt::format("the checkpoint holds no {}.safetensors", group), place);
  const at::NoGradGuard no_grad;
  for (const nn::NamedTensor& parameter : parameters) {
    const auto saved = found->second.find(parameter.name);
    if (saved == found->second.end())
      throw CheckpointError(fmt::format("the checkpoint lacks `{}`", parameter.name), place);
    if (saved->second.sizes() != parameter.value.sizes())
      throw CheckpointError(fmt::format("`{}` has another shape in the checkpoint", parameter.name),
                            place);
    at::Tensor value = parameter.value;
    value.copy_(saved->second);
  }
}

}  // namespace convoy::recipes
