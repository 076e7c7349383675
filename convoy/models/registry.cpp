// SPDX-License-Identifier: Apache-2.0
#include "convoy/models/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "convoy/base/error.h"
#include "convoy/base/suggest.h"
#include "convoy/device/refillable_tensor.h"
#include "convoy/models/gemma3/gemma3.h"
#include "convoy/models/llama/llama.h"
#include "convoy/models/qwen2/qwen2.h"
#include "convoy/models/qwen3/qwen3.h"
#include "convoy/models/weights.h"
#include "convoy/nn/decoder.h"

namespace convoy::models {
namespace {

struct Family {
  const char* model_type;
  const char* architecture;  // of the text model, in transformers
  nn::DecoderSpec (*read_spec)(const io::JsonReader& config);
  TextModel layout = TextModel::Whole;
};

constexpr std::array kFamilies{
    Family{"llama", "LlamaForCausalLM", read_llama_spec},
    Family{"qwen2", "Qwen2ForCausalLM", read_qwen2_spec},
    Family{"qwen3", "Qwen3ForCausalLM", read_qwen3_spec},
    Family{"gemma3_text", "Gemma3ForCausalLM", read_gemma3_spec},
    Family{"gemma3", "Gemma3ForCausalLM", read_nested_gemma3_spec, TextModel::Nested},
};

const Family& family_of(const io::ModelFolder& folder) {
  const io::JsonReader& config = folder.config();
  const std::string type = config.require_string("model_type");
  for (const Family& family : kFamilies) {
    if (type == family.model_type) return family;
  }
  config.fail("model_type", fmt::format("`{}` is not supported{}; there are {}", type,
                                        did_you_mean(type, supported_model_types()),
                                        fmt::join(supported_model_types(), ", ")));
}

void require_compute_dtype(at::ScalarType dtype) {
  if (dtype == at::kFloat || dtype == at::kBFloat16) return;
  throw ConfigError(fmt::format("models run in fp32 or bf16, not {}", at::toString(dtype)),
                    {.key = "model.dtype", .hint = "fp16 overflows in Gemma; use bf16"});
}

}  // namespace

std::vector<std::string> supported_model_types() {
  std::vector<std::string> types;
  for (const Family& family : kFamilies) types.emplace_back(family.model_type);
  return types;
}

std::string architecture_name(const io::ModelFolder& folder) {
  return family_of(folder).architecture;
}

nn::DecoderSpec read_decoder_spec(const io::ModelFolder& folder) {
  return family_of(folder).read_spec(folder.config());
}

std::unique_ptr<nn::CausalLm> load_causal_lm(const io::ModelFolder& folder, at::ScalarType dtype,
                                             at::Device device) {
  require_compute_dtype(dtype);
  const Family& family = family_of(folder);
  nn::DecoderSpec spec = family.read_spec(folder.config());
  const CheckpointWeights weights(folder, spec, family.layout);
  return std::make_unique<nn::Decoder>(std::move(spec),
                                       [&](const nn::ParameterDeclaration& parameter) {
                                         return weights.read(parameter.name, dtype).to(device);
                                       });
}

std::unique_ptr<nn::CausalLm> declare_causal_lm(const io::ModelFolder& folder, at::ScalarType dtype,
                                                at::Device device, nn::DeferredValues& values) {
  require_compute_dtype(dtype);
  const Family& family = family_of(folder);
  nn::DecoderSpec spec = family.read_spec(folder.config());
  const auto weights = std::make_shared<CheckpointWeights>(folder, spec, family.layout);
  const auto options = at::TensorOptions().dtype(dtype).device(device);
  return std::make_unique<nn::Decoder>(
      std::move(spec), [&](const nn::ParameterDeclaration& declared) {
        const at::Tensor parameter = device::tensor_without_memory(declared.shape, options);
        values.set(parameter,
                   [weights, name = declared.name](int64_t begin, const at::Tensor& out) {
                     weights->read_elements(name, begin, out);
                   });
        return parameter;
      });
}

std::map<std::string, at::ScalarType> stored_dtypes(const io::ModelFolder& folder) {
  const Family& family = family_of(folder);
  const nn::DecoderSpec spec = family.read_spec(folder.config());
  const CheckpointWeights weights(folder, spec, family.layout);
  std::map<std::string, at::ScalarType> dtypes;
  for (const nn::ParameterDeclaration& parameter : nn::declare_parameters(spec))
    dtypes[parameter.name] = weights.stored_dtype(parameter.name);
  return dtypes;
}

bool text_model_is_nested(const io::ModelFolder& folder) {
  return family_of(folder).layout == TextModel::Nested;
}

std::vector<int32_t> end_token_ids(const io::ModelFolder& folder) {
  constexpr int64_t kMostId = std::numeric_limits<int32_t>::max();
  std::set<int32_t> ids;
  const auto add = [&](const io::JsonReader& reader) {
    for (const int64_t id : reader.ints_or_empty("eos_token_id", 0, kMostId))
      ids.insert(static_cast<int32_t>(id));
  };
  add(folder.config());
  if (const auto text = folder.config().optional_object("text_config")) add(*text);
  if (folder.generation_config()) add(*folder.generation_config());
  return {ids.begin(), ids.end()};
}

}  // namespace convoy::models
