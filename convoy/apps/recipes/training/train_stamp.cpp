// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/training/train_stamp.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>

#include "convoy/apps/recipes/posttraining/teacher.h"
#include "convoy/apps/recipes/training/agreement.h"
#include "convoy/apps/recipes/training/optimizer_settings.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/config/describe.h"
#include "convoy/core/io/model_fingerprint.h"
#include "convoy/train/parallel/trained_parameters.h"

namespace convoy::recipes {
namespace {

constexpr const char* kBatchSize = "batch_size";
constexpr const char* kGradAccum = "grad_accum";
constexpr const char* kGlobalBatchSize = "global_batch_size";
constexpr const char* kOptimizerStates = "optimizer_states";
constexpr const char* kMasterWeights = "master_weights";

std::string adapter_hash(const std::filesystem::path& adapter) {
  const bool is_file = std::filesystem::is_regular_file(adapter);  // a LoRA file in GGUF
  return sha256_hex_of_file(is_file ? adapter : adapter / "adapter_model.safetensors")
      .substr(0, 16);
}

void require_shape(const checkpoint::GroupReader& reader, const std::string& name,
                   const std::vector<int64_t>& shape) {
  if (reader.shape(name) != shape)
    throw CheckpointError(fmt::format("`{}` has another shape in the checkpoint", name),
                          {.file = reader.place(), .hint = "start anew with --resume never"});
}

// The weights of the parts and the end of the mix. They and the data decide every row of the run.
std::string mix_text(const data::MixConfig& mix) {
  std::string text = mix.stop == data::MixStop::AllExhausted ? "all_exhausted" : "first_exhausted";
  for (const data::MixPart& part : mix.parts) text += fmt::format(" {}:{}", part.name, part.weight);
  return text;
}

void stamp_lora(checkpoint::Stamp& stamp, const adapters::LoraConfig& lora) {
  stamp.set("lora.r", lora.r);
  stamp.set("lora.alpha", fmt::format("{}", lora.alpha));
  stamp.set("lora.variant", lora.use_dora ? "dora" : lora.use_rslora ? "rslora" : "lora");
  stamp.set("lora.dropout", fmt::format("{}", lora.dropout));
  // Targets and patterns together: either may change which tensors exist.
  stamp.set("lora.targets", sha256_hex(lora.to_peft_json(lora.target_names)).substr(0, 16));
}

// Everything that decides the loss of rewarded texts.
std::string policy_text(const settings::TrainSettings& settings) {
  const settings::PolicySettings& policy = settings.policy;
  std::string reference;
  if (policy.kl_beta > 0)
    reference =
        policy.reference == "base" ? policy.reference : io::fingerprint_of_named(policy.reference);
  return fmt::format("{} {} clip {} {} importance {} kl {} {} scale {} steps {} masks {}",
                     settings.task, policy.loss, policy.clip_low, policy.clip_high,
                     policy.importance_cap, policy.kl_beta, reference, policy.scale_rewards,
                     policy.inner_steps, policy.mask_truncated);
}

// Everything that decides the loss of a teacher's texts.
std::string distill_text(const settings::TrainSettings& settings) {
  const settings::DistillSettings& distill = settings.distill;
  return fmt::format("{} {} {} temperature {} top_k {} teacher {}", settings.task,
                     distill.divergence, distill.beta, distill.temperature, distill.top_k,
                     teacher_fingerprint(distill));
}

// Everything besides the weights that decides a text of the model and its reward. The
// contents of a reward's files and programs are not known.
std::string rollout_text(const settings::TrainSettings& settings) {
  const settings::RolloutSettings& rollout = settings.rollout;
  std::string words =
      fmt::format("{} {} {}", rollout.samples, rollout.max_new_tokens, rollout.temperature);
  // Only what is set, so that runs of earlier versions go on.
  if (rollout.top_p != 1) words += fmt::format(" top_p {}", rollout.top_p);
  if (rollout.top_k != 0) words += fmt::format(" top_k {}", rollout.top_k);
  if (rollout.min_p != 0) words += fmt::format(" min_p {}", rollout.min_p);
  for (const std::string& stop : rollout.stop.names) words += "\n" + stop;
  return sha256_hex(words + "\n" + settings.reward.json).substr(0, 16);
}

// Everything that decides the loss of a pair.
std::string objective_text(const settings::TrainSettings& settings) {
  const settings::PreferenceSettings& preference = settings.preference;
  std::string text = fmt::format("{} beta {}", settings.task, preference.beta);
  if (settings.task_facts().chooses_loss)
    text +=
        fmt::format(" {} smoothing {} margin {} normalised {} sft {}",
                    settings::pair_loss_named(preference.loss).name, preference.label_smoothing,
                    preference.target_margin, preference.length_normalised, preference.sft_weight);
  if (settings.task_facts().data == settings::TaskData::Judged)
    text +=
        fmt::format(" weights {} {}", preference.desirable_weight, preference.undesirable_weight);
  if (settings.task_facts().data == settings::TaskData::Judged && !settings.estimates_divergence())
    text += " " + preference.loss;
  if (!settings.has_reference()) return text;
  const std::string& reference = preference.reference;
  const bool is_own = reference == "base" || reference == "start";
  return text + " reference " +
         (is_own ? reference : io::model_fingerprint(io::ModelFolder::open(reference)));
}

}  // namespace

void stamp_settings(checkpoint::Stamp& stamp, const settings::TrainSettings& settings) {
  settings::TrainSettings listed = settings;
  const config::Section list = config::list_fields(listed);
  config::for_each_field(list, "", [&](const std::string& path, const config::Field& field) {
    if (is_own_to_a_node(path) || path == "train.resume_from_checkpoint") return;
    constexpr std::string_view kSection = "train.";
    const std::string name = path.starts_with(kSection) ? path.substr(kSection.size()) : path;
    stamp.set_informational(name, config::value_yaml(field));
  });
}

void stamp_optimizer(checkpoint::Stamp& stamp, const settings::TrainingSettings& train) {
  const optim::StateFormat states = optimizer_states(train);
  stamp.set_of_state(kOptimizerStates, optim::moment_type_name(states.moments));
  stamp.set_of_state(kMasterWeights, states.has_masters ? "fp32" : "none");
}

checkpoint::Stamp train_stamp(const settings::TrainSettings& settings, const LoadedModel& base,
                              const data::EncodedSplits& splits, const std::string& dtype,
                              const std::string& device_kind, const data::BatchPlanConfig& batch) {
  checkpoint::Stamp stamp;
  stamp_settings(stamp, settings);
  stamp.set("backend", device_kind);
  stamp.set("dtype", dtype);
  stamp.set("quantisation", coding_text(*base.model));
  stamp.set("tuning", settings.tuning.mode);
  stamp_optimizer(stamp, settings.train);
  stamp.set("tuning.backend", settings.tuning.backend);
  if (base.lora) stamp_lora(stamp, base.lora->config());
  stamp.set("attention", "packed-causal");
  stamp.set("packing", settings.train.packing ? "on" : "off");
  stamp.set("max_seq_len", settings.model.max_seq_len);
  stamp.set("data", splits.train.content_hash());
  if (!batch.mix.parts.empty()) stamp.set("mix", mix_text(batch.mix));
  stamp.set("shuffle", settings.data.shuffle ? "on" : "off");
  stamp.set("seed", settings.seed);
  stamp.set("model", io::model_fingerprint(base.folder));
  stamp.set("tokenizer", base.tokenizer.content_hash());
  if (const text::ChatTemplate* const chat = base.template_or_null();
      chat && chat->clock().is_read())
    stamp.set_informational(kTemplateClock, fmt::format("{}", chat->clock().seconds()));
  stamp.set("global_batch", batch.global_batch);
  if (settings::learns_preferences(settings.task_facts()))
    stamp.set("objective", objective_text(settings));
  if (settings.task_facts().data == settings::TaskData::Rollouts) {
    stamp.set("objective",
              settings.task_facts().has_teacher ? distill_text(settings) : policy_text(settings));
    stamp.set("rollout", rollout_text(settings));
  }
  // The weights continue from the checkpoint, so another start adapter would be ignored silently.
  if (base.lora && !settings.tuning.lora.adapter.empty())
    stamp.set("start_adapter", adapter_hash(settings.tuning.lora.adapter));
  if (splits.val.num_rows() > 0)
    stamp.set_informational("validation_data", splits.val.content_hash());
  stamp.set_informational("world_size", fmt::format("{}", batch.world_size));
  return stamp;
}

checkpoint::Stamp with_later_settings(checkpoint::Stamp saved, const checkpoint::Stamp& current) {
  checkpoint::Stamp defaults;
  stamp_settings(defaults, {});
  for (const checkpoint::StampField& field : defaults.fields()) {
    const checkpoint::StampField* const now = current.find(field.name);
    if (saved.find(field.name) == nullptr && now != nullptr && now->value == field.value)
      saved.set_informational(field.name, field.value);
  }
  // Before these two settings existed, states and master weights were fp32.
  for (const char* field : {kOptimizerStates, kMasterWeights})
    if (saved.find(field) == nullptr && current.find(field) != nullptr) saved.set(field, "fp32");
  return saved;
}

std::optional<int64_t> kept_global_batch(const checkpoint::Stamp& saved,
                                         const settings::TrainSettings& settings,
                                         const std::vector<std::string>& forced) {
  for (const std::string& field : forced)
    if (field == "all" || field == "global_batch") return std::nullopt;
  // A checkpoint from before a setting existed has its default; no accumulation equals an
  // accumulation of 1.
  const auto is = [&saved](const char* field, int64_t value) {
    const checkpoint::StampField* const found = saved.find(field);
    const std::string text = found == nullptr ? "0" : found->value;
    return text == std::to_string(value) ||
           (field == kGradAccum && std::max<int64_t>(1, value) == 1 &&
            (text == "0" || text == "1"));
  };
  const checkpoint::StampField* const global_batch = saved.find("global_batch");
  if (global_batch == nullptr || !is(kBatchSize, settings.train.batch_rows()) ||
      !is(kGradAccum, settings.train.accumulation()) ||
      !is(kGlobalBatchSize, settings.train.global_batch_size))
    return std::nullopt;
  int64_t rows = 0;
  const std::string& text = global_batch->value;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rows);
  if (error != std::errc() || end != text.data() + text.size() || rows < 1) return std::nullopt;
  return rows;
}

std::vector<optim::NamedState> saved_state(const checkpoint::GroupReader& reader,
                                           const optim::AdamW& optimizer,
                                           const std::vector<parallel::ParameterShard>& shards) {
  std::vector<optim::NamedState> saved;
  for (const optim::NamedState& own : optimizer.state()) {
    const auto [shape, begin] = parallel::range_of(own, shards[own.parameter]);
    require_shape(reader, own.name, shape);
    saved.push_back({own.name,
                     reader.read(own.name, begin, own.value.numel()).view(own.value.sizes()),
                     own.parameter, own.elements_each});
  }
  return saved;
}

void restore_parameters(const std::vector<nn::NamedTensor>& parameters,
                        const checkpoint::GroupReader& reader) {
  const at::NoGradGuard no_grad;
  for (const nn::NamedTensor& parameter : parameters) {
    require_shape(reader, parameter.name, parameter.value.sizes().vec());
    at::Tensor value = parameter.value;
    value.copy_(reader.read(parameter.name));
  }
}

void defer_to_saved(nn::DeferredValues& values, const std::vector<nn::NamedTensor>& parameters,
                    std::shared_ptr<const checkpoint::GroupReader> reader) {
  for (const nn::NamedTensor& parameter : parameters) {
    if (!values.contains(parameter.value)) continue;
    require_shape(*reader, parameter.name, parameter.value.sizes().vec());
    values.set(parameter.value,
               [reader, name = parameter.name](int64_t begin, const at::Tensor& out) {
                 out.copy_(reader->read(name, begin, out.numel()));
               });
  }
}

void restore_shards(const std::vector<parallel::ParameterShard>& shards,
                    const checkpoint::GroupReader& reader) {
  const at::NoGradGuard no_grad;
  for (const parallel::ParameterShard& shard : shards) {
    require_shape(reader, shard.name, shard.shape);
    at::Tensor value = shard.value;
    value.copy_(reader.read(shard.name, shard.begin, value.numel()).view(value.sizes()));
  }
}

}  // namespace convoy::recipes
