// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/lora_gguf.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/io/gguf/decode.h"
#include "convoy/core/io/gguf/encode.h"
#include "convoy/core/io/gguf/family.h"
#include "convoy/core/io/gguf/file.h"
#include "convoy/core/io/gguf/writer.h"
#include "convoy/machine/device/stored_tensor.h"
#include "convoy/model/architecture/families/family.h"
#include "convoy/model/models/gguf_export.h"

namespace convoy::recipes {
namespace {

[[noreturn]] void refuse(const LoadedModel& loaded, const std::string& message) {
  throw DataError(message, {.file = loaded.folder.path().string(),
                            .hint = "write the merged model: leave --adapter-only out"});
}

gguf::TensorToWrite tensor_of(std::string name, const at::Tensor& given, gguf::TensorType type) {
  const at::Tensor values = given.to(at::kFloat).contiguous();
  return {.name = std::move(name),
          .type = type,
          .shape = values.sizes().vec(),
          .produce = [values, type](const io::ByteSink& sink) {
            std::vector<std::byte> bytes(
                static_cast<size_t>(values.numel() * gguf::info_of(type).block_bytes));
            gguf::encode(
                type, {values.const_data_ptr<float>(), static_cast<size_t>(values.numel())}, bytes);
            sink(bytes);
          }};
}

void refuse_others(const LoadedModel& loaded) {
  const adapters::LoraConfig& config = loaded.lora->config();
  if (config.use_dora) refuse(loaded, "llama.cpp has no DoRA");
  if (!config.modules_to_save.empty() || loaded.lora->brings_embeddings())
    refuse(loaded, "llama.cpp's adapters hold no modules that are saved whole");
}

const gguf::Family& family_of_base(const io::ModelFolder& base,
                                   const architecture::DecoderSpec& spec) {
  const gguf::Family* const family =
      gguf::family_of_model_type(base.config().require_string("model_type"));
  const std::string refusal =
      family == nullptr ? "llama.cpp has no such architecture" : models::gguf_refusal(spec);
  if (refusal.empty()) return *family;
  throw DataError(
      fmt::format("adapters of this model have no form in GGUF: {}", refusal),
      {.file = base.path().string(),
       .hint = "use the adapter in its own folder, with `convoy generate` or `convoy serve`"});
}

// The two tensors of a module in a LoRA file.
struct Pair {
  const gguf::TensorPlace* a = nullptr;
  const gguf::TensorPlace* b = nullptr;
};

// By module, in transformers' names.
std::map<std::string, Pair> pairs_of(const gguf::File& file, const gguf::Family& family) {
  constexpr std::string_view kA = ".weight.lora_a", kB = ".weight.lora_b";
  std::map<std::string, Pair> pairs;
  for (const gguf::TensorPlace& place : file.tensors()) {
    const bool is_a = place.name.ends_with(kA);
    const std::string stem =
        place.name.substr(0, place.name.size() - std::min(kA.size(), place.name.size()));
    const auto own = is_a || place.name.ends_with(kB) ? gguf::own_name_of(family, stem + ".weight")
                                                      : std::nullopt;
    if (!own || place.shape.size() != 2)
      file.fail(place.name, "is no part of a LoRA adapter that Convoy has");
    Pair& pair = pairs[own->substr(0, own->size() - std::string_view(".weight").size())];
    (is_a ? pair.a : pair.b) = &place;
  }
  for (const auto& [module, pair] : pairs)
    if (pair.a == nullptr || pair.b == nullptr || pair.a->shape[0] != pair.b->shape[1])
      file.fail(module, "its lora_a and lora_b are not both there, or of different ranks");
  if (pairs.empty()) file.fail("tensors", "there are none");
  return pairs;
}

at::Tensor values_of(const gguf::File& file, const gguf::TensorPlace& place) {
  std::vector<std::byte> stored(static_cast<size_t>(place.bytes));
  file.read(place.offset, stored);
  at::Tensor values = at::empty(place.shape, at::kFloat);
  gguf::decode(place.type, stored,
               {values.mutable_data_ptr<float>(), static_cast<size_t>(values.numel())});
  return values;
}

}  // namespace

void convert_lora_gguf(const std::filesystem::path& path, const io::ModelFolder& base,
                       const std::filesystem::path& folder) {
  const architecture::DecoderSpec spec = families::read_decoder_spec(base);
  const gguf::Family& family = family_of_base(base, spec);
  const gguf::File file(path);
  if (file.text("general.type") != "adapter" || file.text("adapter.type") != "lora")
    file.fail("general.type", "wanted an adapter of the type lora");
  if (file.text("general.architecture") != family.architecture)
    file.fail(
        "general.architecture",
        fmt::format("the adapter is not of the base's architecture, {}", family.architecture));
  const double alpha = file.real("adapter.lora.alpha").value_or(0);
  const std::map<std::string, Pair> pairs = pairs_of(file, family);
  adapters::LoraConfig config;
  config.r = pairs.begin()->second.a->shape[0];
  config.all_linear = false;
  config.base_model = base.path().string();
  // Without an alpha the product is added as it is: alpha is the rank.
  config.alpha = alpha != 0 ? alpha : static_cast<double>(config.r);
  std::vector<io::TensorSource> tensors;
  for (const auto& [module, pair] : pairs) {
    const int64_t rank = pair.a->shape[0];
    config.target_names.push_back(module);
    if (rank != config.r) {
      config.rank_pattern.pairs.emplace_back(module, rank);
      if (alpha == 0) config.alpha_pattern.pairs.emplace_back(module, static_cast<double>(rank));
    }
    at::Tensor b = values_of(file, *pair.b);
    if (gguf::rows_of(family, module + ".weight") != gguf::Rows::AsTheyAre) {
      if (b.size(0) % spec.head_dim != 0)
        file.fail(pair.b->name, "its rows are no whole heads of the base");
      b = models::rows_in_own_order(b, spec.head_dim);
    }
    const std::string prefix = "base_model.model." + module;
    tensors.push_back(device::tensor_source(prefix + ".lora_A.weight", values_of(file, *pair.a)));
    tensors.push_back(device::tensor_source(prefix + ".lora_B.weight", b));
  }
  io::write_safetensors(folder / "adapter_model.safetensors", std::move(tensors));
  write_file_atomic(folder / "adapter_config.json", config.to_peft_json(config.target_names));
}

void write_lora_gguf(const LoadedModel& loaded, const gguf::FileType& type,
                     const std::filesystem::path& path) {
  refuse_others(loaded);
  const architecture::DecoderSpec spec = families::read_decoder_spec(loaded.folder);
  const gguf::Family& family = family_of_base(loaded.folder, spec);
  const adapters::LoraConfig& config = loaded.lora->config();
  // One alpha holds for all: else each B has its scale, and llama.cpp's is left out by 0.
  bool one_alpha = true;
  for (const auto& adapted : loaded.lora->adapted()) {
    const std::string& module = adapted.linear->name();
    const double usual = config.alpha / static_cast<double>(config.rank_of(module));
    one_alpha =
        one_alpha && std::fabs(config.scaling_of(module) - usual) <= 1e-12 * std::fabs(usual);
  }
  std::vector<gguf::TensorToWrite> tensors;
  constexpr std::string_view kPeftPrefix = "base_model.model.";
  for (const nn::NamedTensor& parameter : loaded.lora->parameters()) {
    const bool is_a = parameter.name.ends_with(".lora_A.weight");
    if (!is_a && !parameter.name.ends_with(".lora_B.weight"))
      refuse(loaded, fmt::format("llama.cpp's adapters have no {}", parameter.name));
    const std::string module =
        parameter.name.substr(kPeftPrefix.size(), parameter.name.size() - kPeftPrefix.size() - 14);
    const auto name = gguf::file_name_of(family, module + ".weight");
    if (!name || (spec.tied_head && module == "lm_head"))
      refuse(loaded, fmt::format("llama.cpp has no adapter of {} here", module));
    at::Tensor values = parameter.value.detach().cpu().to(at::kFloat);
    if (!is_a && gguf::rows_of(family, module + ".weight") != gguf::Rows::AsTheyAre)
      values = models::rows_in_file_order(values, spec.head_dim);
    if (!is_a && !one_alpha) values = values * config.scaling_of(module);
    tensors.push_back(tensor_of(*name + (is_a ? ".lora_a" : ".lora_b"), values, type.usual));
  }
  gguf::Metadata metadata;
  metadata.text("general.architecture", family.architecture);
  metadata.text("general.type", "adapter");
  metadata.number("general.file_type", type.number);
  metadata.text("adapter.type", "lora");
  metadata.real("adapter.lora.alpha", one_alpha ? config.alpha : 0.0);
  gguf::write_file(path, metadata, tensors);
}

}  // namespace convoy::recipes
