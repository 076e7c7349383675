// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/bench/bench_predict.h"

#include "convoy/apps/recipes/bench/predicted_generation.h"
#include "convoy/apps/recipes/bench/predicted_model.h"
#include "convoy/apps/recipes/bench/predicted_training.h"
#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/core/base/error.h"
#include "convoy/machine/device/rank_device.h"

namespace convoy::recipes {
namespace {

using Json = nlohmann::ordered_json;
using settings::BenchPredictFlags;

void refuse_flags_of_generation(const BenchPredictFlags& flags) {
  const BenchPredictFlags plain;
  const auto refuse = [](bool differs, const char* key) {
    if (differs)
      throw ConfigError(fmt::format("a training step has no {}", key),
                        {.key = key, .hint = "it belongs to --decode and --prefill"});
  };
  refuse(flags.weights != plain.weights, "weights");
  refuse(flags.quantization != plain.quantization, "quantization");
  refuse(flags.kv_dtype != plain.kv_dtype, "kv_dtype");
  refuse(flags.temperature != plain.temperature, "temperature");
  if (flags.dtype != "bf16")
    throw ConfigError("a training step is counted in bf16", {.key = "dtype"});
  if (flags.tokens < 2)
    throw ConfigError("a row to train on has two tokens or more", {.key = "tokens"});
}

BenchPredictFlags checked(BenchPredictFlags flags) {
  if (flags.model.empty() == flags.config.empty())
    throw ConfigError("bench predict takes the sizes of one model",
                      {.key = "model", .hint = "give --model D or --config CONFIG.json"});
  if (int{flags.decode} + int{flags.prefill} + int{flags.train} != 1)
    throw ConfigError("bench predict predicts one kind of step",
                      {.key = "decode", .hint = "give --decode, --prefill or --train"});
  if (!flags.train && (flags.ranks > 1 || flags.strategy != BenchPredictFlags().strategy))
    throw ConfigError(
        "ranks share a step of training alone",
        {.key = "ranks", .hint = "give --train, or leave out --ranks and --strategy"});
  if (flags.train)
    refuse_flags_of_generation(flags);
  else
    require_one_format(flags.quantization, flags.double_quant, flags.weights);
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
  // Before the counting device is there: LibTorch takes pinned memory from it from then on.
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
