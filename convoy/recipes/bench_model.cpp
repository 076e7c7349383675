// SPDX-License-Identifier: Apache-2.0
#include "convoy/recipes/bench_model.h"

#include <ATen/Parallel.h>

#include "convoy/base/error.h"
#include "convoy/device/dtype.h"
#include "convoy/device/memory.h"
#include "convoy/device/tensor_memory.h"
#include "convoy/device/threads.h"
#include "convoy/nn/decoder.h"

namespace convoy::recipes {
namespace {

// The geometries of bench/peers/geometry.py: Qwen2 layout.
nn::DecoderSpec geometry_spec(const std::string& name) {
  nn::DecoderSpec spec;
  spec.family = "qwen2";
  spec.max_positions = 32768;
  spec.qkv_bias = true;
  int64_t num_layers = 0;
  const auto set = [&](int64_t hidden, int64_t ffn, int64_t layers, int64_t heads, int64_t kv_heads,
                       int64_t vocab) {
    spec.hidden_size = hidden;
    spec.ffn_size = ffn;
    num_layers = layers;
    spec.num_heads = heads;
    spec.num_kv_heads = kv_heads;
    spec.vocab_size = vocab;
  };
  if (name == "tiny") set(256, 688, 4, 4, 2, 4096);
  if (name == "small") set(512, 1408, 8, 8, 2, 32000);
  if (name == "qwen05b") set(896, 4864, 24, 14, 2, 151936);
  if (name == "qwen15b") set(1536, 8960, 28, 12, 2, 151936);
  if (name == "qwen7b") set(3584, 18944, 28, 28, 4, 152064);
  spec.tied_head = name != "qwen7b";
  CONVOY_CHECK(num_layers > 0, ConfigError, "unknown geometry `{}`", name);
  spec.head_dim = spec.hidden_size / spec.num_heads;
  spec.attention_scale = 1.0 / std::sqrt(static_cast<double>(spec.head_dim));
  nn::RopeSpec rope;
  rope.theta = 10000.0;
  spec.ropes = {rope};
  spec.layers.assign(static_cast<size_t>(num_layers), nn::LayerSpec{});
  return spec;
}

std::unique_ptr<nn::CausalLm> random_model(const nn::DecoderSpec& spec, at::ScalarType dtype,
                                           at::Device device) {
  return std::make_unique<nn::Decoder>(spec, [&](const nn::ParameterDeclaration& parameter) {
    const bool is_norm =
        parameter.name.ends_with("norm.weight") || parameter.name.ends_with("layernorm.weight");
    const auto options = at::TensorOptions().device(device);
    return is_norm ? at::ones(parameter.shape, options.dtype(dtype))
                   : at::randn(parameter.shape, options.dtype(at::kFloat)).mul_(0.02).to(dtype);
  });
}

}  // namespace

std::unique_ptr<nn::CausalLm> bench_model(const settings::BenchFlags& flags, at::Device device) {
  device::keep_tensor_memory();
  if (flags.threads > 0) {
    at::set_num_threads(static_cast<int>(flags.threads));
  } else {
    device::share_cpu_threads(1);
  }
  at::manual_seed(0);
  return random_model(geometry_spec(flags.geometry), device::parse_dtype(flags.dtype), device);
}

void require_positions(const nn::CausalLm& model, int64_t tokens, const std::string& flag) {
  if (tokens <= model.max_positions()) return;
  throw ConfigError(
      fmt::format("wanted rows of at most {} tokens, the positions of the geometry, found {}",
                  model.max_positions(), tokens),
      {.key = flag, .hint = "lower it"});
}

nlohmann::ordered_json bench_memory(at::Device device) {
  nlohmann::ordered_json figures = {
      {"peak_rss_mb", device::process_memory().peak_resident_bytes >> 20}};
  if (!device.is_cpu()) figures["peak_device_mb"] = device::rank_memory(device).peak_bytes >> 20;
  return figures;
}

}  // namespace convoy::recipes
