// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/bench/predicted_training.h"

#include "convoy/apps/recipes/bench/bench_model.h"
#include "convoy/apps/recipes/bench/bench_training.h"
#include "convoy/apps/recipes/bench/counting_group.h"
#include "convoy/apps/recipes/bench/measured_ops.h"
#include "convoy/apps/recipes/bench/predicted_model.h"
#include "convoy/apps/recipes/training/optimizer_settings.h"
#include "convoy/apps/recipes/training/step_flops.h"
#include "convoy/machine/counting/counting_device.h"
#include "convoy/machine/device/dtype.h"
#include "convoy/train/comm/single/single_group.h"

namespace convoy::recipes {
namespace {

constexpr int64_t kTimedTrainingSteps = 5;

std::unique_ptr<nn::CausalLm> model_to_predict(const architecture::DecoderSpec& spec,
                                               const settings::BenchPredictFlags& flags,
                                               at::Device device, Values values) {
  std::optional<kernels::BitsandbytesFormat> format;
  if (flags.mode == "qlora") format = kQloraFormat;
  const auto options = at::TensorOptions().dtype(device::parse_dtype(flags.dtype)).device(device);
  auto model = model_of_sizes(spec, options, values, format);
  require_positions(*model, flags.tokens, "tokens");
  return model;
}

nn::Recompute recompute_of(const settings::BenchPredictFlags& flags) {
  if (flags.recompute) return nn::Recompute::Blocks;
  return flags.selective ? nn::Recompute::Selective : nn::Recompute::Nothing;
}

BenchTrainingConfig config_of(const settings::BenchPredictFlags& flags) {
  return {.mode = flags.mode,
          .strategy = flags.strategy,
          .row_tokens = flags.tokens,
          .batch_rows = flags.rows,
          .recompute = recompute_of(flags),
          .attention = flags.attention,
          .states = state_format(flags.optimizer_state_dtype, flags.master_weights),
          .device_bytes = counting::gpu_speed(flags.device).memory_bytes};
}

std::unique_ptr<comm::Group> group_of(int64_t ranks) {
  if (ranks == 1) return std::make_unique<comm::SingleGroup>();
  return std::make_unique<CountingGroup>(static_cast<int>(ranks));
}

// FLOPs of a step on each rank.
double model_flops(BenchTraining& training, const settings::BenchPredictFlags& flags) {
  return step_flops_of(training.model(), training.lora())(
      std::vector<int64_t>(static_cast<size_t>(flags.rows), flags.tokens),
      flags.rows * (flags.tokens - 1));
}

}  // namespace

CountedStep count_training(const architecture::DecoderSpec& spec,
                           const settings::BenchPredictFlags& flags) {
  install_counting_gpu();
  auto model = model_to_predict(spec, flags, counting::device(), Values::None);
  const std::unique_ptr<comm::Group> group = group_of(flags.ranks);
  BenchTraining training(config_of(flags), std::move(model), *group, Log(LogLevel::Quiet));
  for (const nn::NamedTensor& parameter : training.model().parameters())
    counting::label_memory_of(parameter.value, counting::Content::Weights);
  counting::label_memory(counting::Content::States);
  training.step();
  counting::reset_peak_memory();
  counting::Recording recording;
  training.step();
  const auto weights = static_cast<double>(counting::labelled_bytes(counting::Content::Weights));
  const auto states = static_cast<double>(counting::labelled_bytes(counting::Content::States));
  return {.described = {{"step", "train"},
                        {"mode", flags.mode},
                        {"rows", flags.rows},
                        {"tokens", flags.tokens},
                        {"dtype", flags.dtype},
                        {"recompute", architecture::gradient_checkpointing_of(recompute_of(flags))},
                        {"attention", flags.attention},
                        {"optimizer_state_dtype", flags.optimizer_state_dtype},
                        {"master_weights", flags.master_weights},
                        {"ranks", flags.ranks},
                        {"strategy", training.strategy_name()}},
          .work = recording.take(),
          .flops = model_flops(training, flags),
          // Forward and backward both read the weights, which no cache holds. States are read and
          // written once.
          .least_bytes = 2 * (weights + states),
          .tokens = flags.rows * flags.tokens * flags.ranks,
          .moved = {{"weight", counting::Content::Weights},
                    {"state", counting::Content::States},
                    {"other", counting::Content::Other}},
          .memory = {{"peak_memory_bytes", counting::peak_memory_bytes()},
                     {"planned_memory_bytes", training.planned_bytes()},
                     {"device_memory_bytes", counting::gpu_speed(flags.device).memory_bytes}}};
}

MeasuredStep measure_training(const architecture::DecoderSpec& spec,
                              const settings::BenchPredictFlags& flags, at::Device device) {
  comm::SingleGroup group;
  BenchTraining training(config_of(flags), model_to_predict(spec, flags, device, Values::Random),
                         group, Log(LogLevel::Quiet));
  const auto step = [&training] { training.step(); };
  step();
  const double seconds = time_steps(device, kTimedTrainingSteps, step);
  return {.seconds = seconds, .seconds_by_op = measure_ops(device, step)};
}

}  // namespace convoy::recipes
