// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/bench/bench_predict.h"

#include "convoy/apps/recipes/bench/predicted_generation.h"
#include "convoy/apps/recipes/bench/predicted_model.h"
#include "convoy/apps/recipes/bench/predicted_training.h"
#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/core/base/error.h"
#include "convoy/core/config/flags.h"
#include "convoy/machine/device/rank_device.h"

namespace convoy::recipes {
namespace {

using Json = nlohmann::ordered_json;
using settings::BenchPredictFlags;

using Changed = std::vector<std::pair<const char*, bool>>;

// Throws ConfigError for a flag that was changed but has no effect in this step. `changed`: by key,
// whether the flag differs from its default.
void refuse(const Changed& changed, std::string_view step, std::string_view owners) {
  for (const auto& [key, differs] : changed)
    if (differs)
      throw ConfigError(fmt::format("{} has no --{}", step, config::dashed(key)),
                        {.key = key, .hint = fmt::format("it belongs to {}", owners)});
}

void check_training(const BenchPredictFlags& flags) {
  const BenchPredictFlags plain;
  refuse({{"weights", flags.weights != plain.weights},
          {"quantization", flags.quantization != plain.quantization},
          {"double_quant", flags.double_quant},
          {"kv_dtype", flags.kv_dtype != plain.kv_dtype},
          {"temperature", flags.temperature != plain.temperature},
          {"top_p", flags.top_p != plain.top_p}},
         "a training step", "--decode and --prefill");
  refuse({{"context", flags.context != plain.context}}, "a training step", "--decode");
  if (flags.dtype != "bf16")
    throw ConfigError("a training step is counted in bf16",
                      {.key = "dtype", .hint = "leave --dtype out"});
  if (flags.tokens < 2)
    throw ConfigError("a row to train on has two tokens or more",
                      {.key = "tokens", .hint = "give --tokens 2 or more"});
  if (flags.recompute && flags.selective)
    throw ConfigError("--recompute computes all again that --selective does",
                      {.key = "selective", .hint = "give one of them"});
}

void check_generation(const BenchPredictFlags& flags) {
  const BenchPredictFlags plain;
  refuse({{"ranks", flags.ranks != plain.ranks},
          {"strategy", flags.strategy != plain.strategy},
          {"mode", flags.mode != plain.mode},
          {"recompute", flags.recompute},
          {"selective", flags.selective},
          {"attention", flags.attention != plain.attention},
          {"optimizer_state_dtype", flags.optimizer_state_dtype != plain.optimizer_state_dtype},
          {"master_weights", flags.master_weights != plain.master_weights}},
         "a step of generation", "--train");
  refuse({{"context", !flags.decode && flags.context != plain.context}}, "a prefill", "--decode");
  require_one_format(flags.quantization, flags.double_quant, flags.weights);
}

BenchPredictFlags checked(BenchPredictFlags flags) {
  if (flags.model.empty() == flags.config.empty())
    throw ConfigError("bench predict takes the sizes of one model",
                      {.key = "model", .hint = "give --model D or --config CONFIG.json"});
  if (int{flags.decode} + int{flags.prefill} + int{flags.train} != 1)
    throw ConfigError("bench predict predicts one kind of step",
                      {.key = "decode", .hint = "give --decode, --prefill or --train"});
  if (flags.train)
    check_training(flags);
  else
    check_generation(flags);
  if (flags.rows == 0) flags.rows = flags.decode ? 16 : 1;
  return flags;
}

}  // namespace

MeasuredStep measure_step(const BenchPredictFlags& given, at::Device device) {
  const BenchPredictFlags flags = checked(given);
  const architecture::DecoderSpec spec = spec_of(flags);
  return flags.train ? measure_training(spec, flags, device)
                     : measure_generation(spec, flags, device);
}

Json bench_predict(const BenchPredictFlags& given, const std::string& devices) {
  const BenchPredictFlags flags = checked(given);
  const counting::GpuSpeed& gpu = counting::gpu_speed(flags.device);
  const architecture::DecoderSpec spec = spec_of(flags);
  // Measures before the counting device is installed: from then on LibTorch takes pinned memory
  // from that device.
  std::optional<MeasuredStep> measured;
  if (flags.measure && flags.ranks == 1 && devices == "cuda")
    measured = measure_step(flags, device::take_rank_device(devices, 0).device);
  const CountedStep counted =
      flags.train ? count_training(spec, flags) : count_generation(spec, flags);
  Json result = report_of(counted, gpu, flags.dtype);
  if (!measured) return result;
  result["measured_ms"] = measured->seconds * 1e3;
  for (Json& op : result["ops"]) {
    const auto found = measured->seconds_by_op.find(op["op"]);
    if (found != measured->seconds_by_op.end()) op["measured_device_ms"] = found->second * 1e3;
  }
  return result;
}

}  // namespace convoy::recipes
