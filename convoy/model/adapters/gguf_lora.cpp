// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/adapters/gguf_lora.h"

#include <ATen/ATen.h>

#include <map>
#include <optional>
#include <string_view>

#include "convoy/core/base/error.h"
#include "convoy/core/io/gguf/decode.h"
#include "convoy/core/io/gguf/file.h"
#include "convoy/core/io/gguf/gguf_family.h"
#include "convoy/model/adapters/module_names.h"

namespace convoy::adapters {
namespace {

constexpr const char* kTypeKey = "general.type";
constexpr const char* kLoraKey = "adapter.type";
constexpr const char* kArchitectureKey = "general.architecture";
constexpr const char* kAlphaKey = "adapter.lora.alpha";
constexpr const char* kInvocationKey = "adapter.alora.invocation_tokens";

[[noreturn]] void refuse(const gguf::File& file, const std::string& key, const std::string& message,
                         const char* hint) {
  throw DataError(message, {.file = file.path().string(), .key = key, .hint = hint});
}

void require_lora(const gguf::File& file) {
  const std::string type = file.text(kTypeKey).value_or("model");
  if (type != "adapter")
    refuse(file, kTypeKey,
           fmt::format("wanted a LoRA adapter, found a file of the type `{:.60}`", type),
           type == "model" ? "name a model's file with --model"
                           : "name a LoRA file, or the folder of a PEFT adapter");
  if (const std::string kind = file.text(kLoraKey).value_or(""); kind != "lora")
    refuse(file, kLoraKey, fmt::format("wanted an adapter of the type lora, found `{:.60}`", kind),
           "name a LoRA file, or the folder of a PEFT adapter");
  if (file.list(kInvocationKey) != nullptr)
    refuse(file, kInvocationKey,
           "an activated LoRA, which changes only what follows its invocation tokens, is not "
           "supported",
           "use it in llama.cpp");
}

const gguf::Family& family_of(const gguf::File& file, const std::string& model_type) {
  const std::string found = file.require_text(kArchitectureKey);
  const gguf::Family* const family = gguf::family_of(found, model_type);
  if (family == nullptr)
    refuse(file, kArchitectureKey,
           fmt::format("the adapter belongs to a model of the architecture `{:.60}`, and the base "
                       "is of the family {}",
                       found, model_type),
           "name the model that the adapter was trained on");
  return *family;
}

// "model.layers.3.self_attn.q_proj" for "blk.3.attn_q.weight.lora_a".
std::optional<std::string> module_of_tensor(const gguf::Family& family, std::string_view name,
                                            std::string_view ending) {
  constexpr std::string_view kWeight = ".weight";
  if (!name.ends_with(ending)) return std::nullopt;
  const auto own = gguf::own_name_of(family, name.substr(0, name.size() - ending.size()));
  if (!own || !own->ends_with(kWeight)) return std::nullopt;
  return own->substr(0, own->size() - kWeight.size());
}

// The two factors of the change that LoRA makes to a module.
struct Factors {
  const gguf::TensorPlace* a = nullptr;
  const gguf::TensorPlace* b = nullptr;
};

std::map<std::string, Factors> factors_by_module(const gguf::File& file,
                                                 const gguf::Family& family) {
  constexpr const char* kMergeThere =
      "merge it into the model there, with llama-export-lora, and name the merged file as the "
      "model";
  std::map<std::string, Factors> factors;
  for (const gguf::TensorPlace& place : file.tensors()) {
    const auto of_a = module_of_tensor(family, place.name, ".lora_a");
    const auto module = of_a ? of_a : module_of_tensor(family, place.name, ".lora_b");
    if (!module || place.shape.size() != 2)
      refuse(file, place.name,
             fmt::format("`{:.200}` is no part of a LoRA adapter that Convoy has", place.name),
             kMergeThere);
    if (module->find(".linear_attn.") != std::string::npos)
      refuse(file, place.name,
             fmt::format("`{}`: LoRA on layers of Gated DeltaNet is not read from GGUF, which has "
                         "their heads in another order",
                         place.name),
             kMergeThere);
    if (*module == "model.embed_tokens" || *module == "lm_head")
      refuse(file, place.name,
             fmt::format("`{}`: LoRA on embedding or output head is not supported", place.name),
             kMergeThere);
    Factors& pair = factors[*module];
    (of_a ? pair.a : pair.b) = &place;
  }
  for (const auto& [module, pair] : factors)
    if (pair.a == nullptr || pair.b == nullptr || pair.a->shape[0] != pair.b->shape[1])
      file.fail(module, "its lora_a and lora_b are not both there, or of different ranks");
  if (factors.empty()) file.fail("tensors", "there are none");
  return factors;
}

at::Tensor values_of(const gguf::File& file, const gguf::TensorPlace& place) {
  std::vector<std::byte> stored(static_cast<size_t>(place.bytes));
  file.read(place.offset, stored);
  at::Tensor values = at::empty(place.shape, at::kFloat);
  gguf::decode(place.type, stored,
               {values.mutable_data_ptr<float>(), static_cast<size_t>(values.numel())});
  return values;
}

// llama.cpp rotates neighbouring features, so the file has the rows of a head in another order.
at::Tensor in_own_order(const gguf::File& file, const gguf::TensorPlace& place, int64_t head_dim) {
  if (place.shape[0] % head_dim != 0)
    file.fail(place.name, "its rows are no whole heads of the base");
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < place.shape[0]; ++row)
    rows.push_back(gguf::permuted_row(row, head_dim));
  return values_of(file, place).index_select(0, at::tensor(rows));
}

// llama.cpp's scale is alpha / rank of each module. For a file without alpha it adds the product
// unscaled, which alpha = rank expresses.
LoraConfig config_of(const gguf::File& file, const std::map<std::string, Factors>& factors) {
  const double alpha = file.real(kAlphaKey).value_or(0);
  LoraConfig config;
  config.r = factors.begin()->second.a->shape[0];
  config.alpha = alpha != 0 ? alpha : static_cast<double>(config.r);
  config.all_linear = false;
  for (const auto& [module, pair] : factors) {
    config.target_names.push_back(module);
    const int64_t rank = pair.a->shape[0];
    if (rank == config.r) continue;
    config.rank_pattern.pairs.emplace_back(module, rank);
    if (alpha == 0) config.alpha_pattern.pairs.emplace_back(module, static_cast<double>(rank));
  }
  return config;
}

}  // namespace

GgufLora read_gguf_lora(const std::filesystem::path& path, const std::string& model_type,
                        int64_t head_dim) {
  const gguf::File file(path);
  require_lora(file);
  const gguf::Family& family = family_of(file, model_type);
  const std::map<std::string, Factors> factors = factors_by_module(file, family);
  GgufLora lora{.config = config_of(file, factors), .tensors = {}};
  for (const auto& [module, pair] : factors) {
    const bool permuted = gguf::rows_of(family, module + ".weight") != gguf::Rows::AsTheyAre;
    const std::string prefix = kPeftPrefix + module;
    lora.tensors.push_back({prefix + ".lora_A.weight", values_of(file, *pair.a)});
    lora.tensors.push_back({prefix + ".lora_B.weight", permuted
                                                           ? in_own_order(file, *pair.b, head_dim)
                                                           : values_of(file, *pair.b)});
  }
  return lora;
}

void require_gguf_lora(const std::filesystem::path& path) { require_lora(gguf::File(path)); }

std::vector<std::string> gguf_lora_notices(const std::filesystem::path& adapter) {
  if (!gguf::is_gguf_file(adapter)) return {};
  const gguf::File file(adapter);
  std::vector<std::string> notices;
  for (const auto& [key, value] : file.metadata())
    if (key.starts_with("adapter.") && key != kLoraKey && key != kAlphaKey)
      notices.push_back(fmt::format("{}: {} is not used{}", adapter.string(), key,
                                    key == "adapter.lora.prompt_prefix"
                                        ? ": write its text before the prompts yourself"
                                        : ""));
  return notices;
}

}  // namespace convoy::adapters
