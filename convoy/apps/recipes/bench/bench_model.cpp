// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/bench/bench_model.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"
#include "convoy/machine/device/dtype.h"
#include "convoy/machine/device/memory.h"
#include "convoy/machine/device/refillable_tensor.h"
#include "convoy/machine/device/tensor_memory.h"
#include "convoy/model/nn/decoder.h"

namespace convoy::recipes {
namespace {

struct Geometry {
  const char* name;
  const char* family;
  int64_t hidden, ffn, layers, heads, kv_heads, head_dim, vocab;
  bool tied_head;
};

// The first ones are those of bench/peers/geometry.py; the others have the sizes of their
// config.json.
constexpr std::array kGeometries{
    Geometry{"tiny", "qwen2", 256, 688, 4, 4, 2, 64, 4096, true},
    Geometry{"small", "qwen2", 512, 1408, 8, 8, 2, 64, 32000, true},
    Geometry{"qwen05b", "qwen2", 896, 4864, 24, 14, 2, 64, 151936, true},
    Geometry{"qwen15b", "qwen2", 1536, 8960, 28, 12, 2, 128, 151936, true},
    Geometry{"qwen7b", "qwen2", 3584, 18944, 28, 28, 4, 128, 152064, false},
    Geometry{"qwen2.5-7b", "qwen2", 3584, 18944, 28, 28, 4, 128, 152064, false},
    Geometry{"smollm2-135m", "llama", 576, 1536, 30, 9, 3, 64, 49152, true},
    Geometry{"llama-3.2-1b", "llama", 2048, 8192, 16, 32, 8, 64, 128256, true},
    Geometry{"llama-3.1-8b", "llama", 4096, 14336, 32, 32, 8, 128, 128256, false},
};

architecture::DecoderSpec geometry_spec(const std::string& name) {
  const auto* const found = std::find_if(kGeometries.begin(), kGeometries.end(),
                                         [&](const Geometry& each) { return name == each.name; });
  CONVOY_CHECK(found != kGeometries.end(), ConfigError, "unknown geometry `{}`", name);
  architecture::DecoderSpec spec;
  spec.family = found->family;
  spec.max_positions = 32768;
  spec.qkv_bias = spec.family == "qwen2";
  spec.hidden_size = found->hidden;
  spec.ffn_size = found->ffn;
  spec.num_heads = found->heads;
  spec.num_kv_heads = found->kv_heads;
  spec.head_dim = found->head_dim;
  spec.vocab_size = found->vocab;
  spec.tied_head = found->tied_head;
  spec.attention_scale = 1.0 / std::sqrt(static_cast<double>(spec.head_dim));
  architecture::RopeSpec rope;
  rope.theta = 10000.0;
  spec.ropes = {rope};
  spec.layers.assign(static_cast<size_t>(found->layers), architecture::LayerSpec{});
  return spec;
}

// Filled in blocks with a seed each, so that a part of a parameter is the same for every caller.
void read_random(const std::string& name, int64_t begin, const at::Tensor& out) {
  constexpr int64_t kBlock = 1 << 16;
  const int64_t end = begin + out.numel();
  const uint64_t seed = static_cast<uint64_t>(crc32c(name)) << 32;
  const auto fill = [&](int64_t block) {
    const int64_t number = begin / kBlock + block;
    at::Generator generator = at::detail::createCPUGenerator(seed + static_cast<uint64_t>(number));
    const at::Tensor values = at::empty({kBlock}).normal_(0, 0.02, generator);
    const int64_t first = std::max(begin, number * kBlock);
    const int64_t count = std::min(end, (number + 1) * kBlock) - first;
    out.narrow(0, first - begin, count)
        .copy_(values.narrow(0, first - number * kBlock, count).to(out.scalar_type()));
  };
  const int64_t num_blocks = (end + kBlock - 1) / kBlock - begin / kBlock;
  at::parallel_for(0, num_blocks, 1, [&](int64_t from, int64_t to) {
    for (int64_t block = from; block < to; ++block) fill(block);
  });
}

bool is_norm(const std::string& name) { return name.ends_with("norm.weight"); }

}  // namespace

std::unique_ptr<nn::CausalLm> bench_model(const settings::BenchFlags& flags, at::Device device,
                                          nn::DeferredValues* values) {
  device::keep_tensor_memory();
  if (flags.threads > 0) at::set_num_threads(static_cast<int>(flags.threads));
  at::manual_seed(0);
  const auto options = at::TensorOptions().dtype(device::parse_dtype(flags.dtype)).device(device);
  return std::make_unique<nn::Decoder>(
      geometry_spec(flags.geometry), [&](const architecture::ParameterDeclaration& declared) {
        const auto read = [name = declared.name](int64_t begin, const at::Tensor& out) {
          if (is_norm(name))
            out.fill_(1);
          else
            read_random(name, begin, out);
        };
        if (values == nullptr) {
          const at::Tensor parameter = at::empty(declared.shape, options);
          read(0, parameter.view({-1}));
          return parameter;
        }
        const at::Tensor parameter = device::tensor_without_memory(declared.shape, options);
        values->set(parameter, read);
        return parameter;
      });
}

text::Tokenizer word_tokenizer(int64_t vocab_size) {
  std::string pattern = (std::filesystem::temp_directory_path() / "convoy-bench-XXXXXX").string();
  CONVOY_CHECK(::mkdtemp(pattern.data()) != nullptr, IoError, "no folder can be made in {}",
               std::filesystem::temp_directory_path().string());
  const std::filesystem::path folder = pattern;
  nlohmann::json vocabulary =
      nlohmann::json::object();  // an ordered one looks a key up in linear time
  for (int64_t id = 0; id < vocab_size; ++id) vocabulary["w" + std::to_string(id)] = id;
  std::ofstream(folder / "tokenizer.json") << nlohmann::ordered_json{
      {"version", "1.0"},
      {"added_tokens", nlohmann::ordered_json::array()},
      {"pre_tokenizer", {{"type", "WhitespaceSplit"}}},
      {"model", {{"type", "WordLevel"}, {"vocab", vocabulary}, {"unk_token", "w0"}}}};
  std::ofstream(folder / "tokenizer_config.json") << "{}";
  text::Tokenizer tokenizer = text::Tokenizer::load(folder);
  std::filesystem::remove_all(folder);
  return tokenizer;
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
