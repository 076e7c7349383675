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
#include "convoy/model/sizing/known_models.h"

namespace convoy::recipes {
namespace {

// Qwen2's form in sizes that only benchmarks have, as in bench/peers/geometry.py.
struct SmallGeometry {
  std::string_view name;
  int64_t hidden, ffn, layers, heads, vocab;
};
constexpr std::array kSmall{SmallGeometry{"tiny", 256, 688, 4, 4, 4096},
                            SmallGeometry{"small", 512, 1408, 8, 8, 32000}};

// Pairs of a name in bench/peers/geometry.py and the known model.
constexpr std::array<std::pair<std::string_view, const char*>, 3> kShortNames{
    {{"qwen05b", "qwen2.5-0.5b"}, {"qwen15b", "qwen2.5-1.5b"}, {"qwen7b", "qwen2.5-7b"}}};

architecture::DecoderSpec geometry_spec(const std::string& name) {
  std::string model = name;
  for (const auto& [short_name, known] : kShortNames)
    if (name == short_name) model = known;
  const auto* const small = std::find_if(kSmall.begin(), kSmall.end(),
                                         [&](const auto& each) { return name == each.name; });
  const bool is_small = small != kSmall.end();
  auto found = sizing::known_model(is_small ? "qwen2.5-0.5b" : model);
  if (!found.has_value())
    throw ConfigError(fmt::format("unknown geometry `{}`", name),
                      {.hint = "name a folder with config.json, or a model such as qwen2.5-0.5b"});
  architecture::DecoderSpec& spec = *found;
  if (is_small) {
    spec.hidden_size = small->hidden;
    spec.ffn_size = small->ffn;
    spec.layers.resize(static_cast<size_t>(small->layers));
    spec.num_heads = small->heads;
    spec.vocab_size = small->vocab;
  }
  spec.max_positions = 32768;
  spec.attention_scale = 1.0 / std::sqrt(static_cast<double>(spec.head_dim));
  if (spec.ropes.empty()) spec.ropes = {{.theta = 10000.0}};
  return spec;
}

// Fills `out` with the values of the parameter `name` from index `begin` on. Each block of values
// has its own seed, so every caller gets the same values for a part of a parameter.
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
  if (::mkdtemp(pattern.data()) == nullptr)
    throw IoError(
        fmt::format("no folder can be made in {}", std::filesystem::temp_directory_path().string()),
        {.hint = "set TMPDIR to a folder on a disk that is not full and may be written to"});
  const std::filesystem::path folder = pattern;
  nlohmann::json vocabulary =
      nlohmann::json::object();  // not ordered_json: its lookup takes linear time
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
