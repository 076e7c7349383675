// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/models/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/io/json_text.h"
#include "convoy/machine/device/dtype.h"
#include "convoy/machine/device/stored_tensor.h"
#include "convoy/model/architecture/families/family.h"
#include "convoy/model/models/registry.h"

namespace convoy::models {
namespace {

constexpr const char* kCopiedFiles[] = {"tokenizer.json",
                                        "tokenizer_config.json",
                                        "special_tokens_map.json",
                                        "added_tokens.json",
                                        "vocab.json",
                                        "merges.txt",
                                        "tokenizer.model",
                                        "chat_template.jinja",
                                        "chat_template.json",
                                        "generation_config.json"};

// Files of the processor, which a checkpoint that takes images has beside the tokenizer's files.
constexpr const char* kProcessorFiles[] = {"preprocessor_config.json", "processor_config.json",
                                           "video_preprocessor_config.json"};

constexpr int64_t kExportPieceElements = int64_t{1} << 20;

// The value is converted piece by piece while it is written, so a second copy of the model never
// exists.
io::TensorSource write_as(const std::string& name, const at::Tensor& value, at::ScalarType dtype) {
  const at::Tensor source = value.detach();
  return {.name = name,
          .dtype = device::stored_dtype(dtype),
          .shape = source.sizes().vec(),
          .produce = [source, dtype](const io::ByteSink& sink) {
            const at::Tensor flat = source.contiguous().view({-1});
            for (int64_t begin = 0; begin < flat.numel(); begin += kExportPieceElements) {
              const int64_t count = std::min(kExportPieceElements, flat.numel() - begin);
              const at::Tensor piece = flat.narrow(0, begin, count).to(dtype).cpu().contiguous();
              sink({static_cast<const std::byte*>(piece.const_data_ptr()), piece.nbytes()});
            }
          }};
}

// The units of the model by the names of their parameters.
std::map<std::string, size_t> units_by_parameter(nn::CausalLm& model) {
  std::map<std::string, size_t> units;
  const std::vector<nn::Unit> listed = model.units();
  for (size_t index = 0; index < listed.size(); ++index)
    for (const auto* parameters : {&listed[index].frozen, &listed[index].trained})
      for (const nn::NamedTensor& parameter : *parameters) units[parameter.name] = index;
  return units;
}

// Holds the unit's values in memory while its tensor is written.
io::TensorSource in_use(io::TensorSource source, nn::Residency* residency, size_t unit) {
  source.produce = [produce = std::move(source.produce), residency,
                    unit](const io::ByteSink& sink) {
    const nn::UnitUse use(residency, unit);
    produce(sink);
  };
  return source;
}

void refuse_overflow(const std::string& name, const at::Tensor& value, at::ScalarType dtype) {
  if (dtype == at::kFloat) return;
  const at::Tensor flat = value.detach().contiguous().view({-1});
  for (int64_t begin = 0; begin < flat.numel(); begin += kExportPieceElements) {
    const at::Tensor piece =
        flat.narrow(0, begin, std::min(kExportPieceElements, flat.numel() - begin));
    const at::Tensor lost = piece.isfinite().logical_and(piece.to(dtype).isinf());
    if (!lost.any().item<bool>()) continue;
    throw NumericError(
        fmt::format("{} holds {:g}, which {} cannot hold", name,
                    piece.masked_select(lost)[0].item<double>(), device::dtype_name(dtype)),
        {.key = name, .hint = "store the model in bf16 or fp32"});
  }
}

// A nested text model stands on its own in the export: text_config becomes the whole config, with
// the values that it inherited.
nlohmann::json unnested(const io::JsonReader& config, const families::Family& family) {
  nlohmann::json text = config.require_object("text_config").value();
  text["model_type"] = family.model_type;
  for (const char* key : {"tie_word_embeddings", "eos_token_id", "bos_token_id", "pad_token_id"}) {
    if (config.has(key)) text[key] = *config.find(key);
  }
  return text;
}

std::string transformers_name(at::ScalarType dtype) {
  if (dtype == at::kHalf) return "float16";
  return dtype == at::kFloat ? "float32" : "bfloat16";
}

void set_dtype(nlohmann::json& config, at::ScalarType dtype) {
  if (config.contains("dtype")) {
    config["dtype"] = transformers_name(dtype);
    config.erase("torch_dtype");
  } else {
    config["torch_dtype"] = transformers_name(dtype);
  }
}

nlohmann::json exported_config(const io::ModelFolder& source, Extent extent,
                               std::optional<at::ScalarType> dtype) {
  nlohmann::json config = source.config().value();
  const bool keeps_rest = extent == Extent::Whole && holds_more_than_text(source);
  if (!keeps_rest) {
    const families::Family& family = families::text_family_of(source);
    if (holds_more_than_text(source)) config = unnested(source.config(), family);
    config["architectures"] = {family.architecture};
  }
  config.erase("auto_map");             // its code is not part of the export
  config.erase("quantization_config");  // weights are exported as numbers
  if (!dtype) return config;
  set_dtype(config, *dtype);
  if (!keeps_rest) return config;
  nlohmann::json& text = config["text_config"];
  if (text.contains("dtype") || text.contains("torch_dtype")) set_dtype(text, *dtype);
  return config;
}

// tokenizer_config.json may hold a template for rows with tools beside the usual one.
void set_chat_template(std::map<std::string, std::string>& files, const std::string& text) {
  files["chat_template.jinja"] = text;
  files.erase("chat_template.json");
  for (const char* name : {"tokenizer_config.json", "processor_config.json"}) {
    const auto file = files.find(name);
    if (file == files.end()) continue;
    io::Json config = io::parse_json(file->second, file->first);
    if (config.is_object() && config.erase("chat_template") > 0)
      file->second = config.dump(2) + "\n";
  }
}

}  // namespace

void export_model(nn::CausalLm& model, const io::ModelFolder& source,
                  const std::filesystem::path& folder, const ExportConfig& config) {
  const CheckpointRest rest(source, config.extent);
  std::vector<io::TensorSource> tensors;
  const std::map<std::string, size_t> units = units_by_parameter(model);
  for (const nn::NamedTensor& parameter : model.parameters()) {
    const auto own = config.own_dtypes.find(parameter.name);
    const at::ScalarType dtype = own == config.own_dtypes.end() ? config.dtype : own->second;
    if (dtype != at::kFloat && dtype != at::kBFloat16 && dtype != at::kHalf)
      throw ConfigError(
          fmt::format("models are written in fp32, bf16 or fp16, not {}", at::toString(dtype)),
          {.hint = "write it as bf16: --dtype bf16"});
    const size_t unit = units.at(parameter.name);
    if (parameter.value.scalar_type() != dtype) {
      const nn::UnitUse use(model.residency(), unit);
      refuse_overflow(parameter.name, parameter.value, dtype);
    }
    tensors.push_back(in_use(write_as(rest.saved_name(parameter.name), parameter.value, dtype),
                             model.residency(), unit));
  }
  if (!config.writes) {
    // The rest is written after the parameters, so it changes neither their order nor their shards.
    io::produce_model_weights(std::move(tensors), config.max_shard_bytes);
    return;
  }
  for (io::TensorSource& other : rest.sources()) tensors.push_back(std::move(other));
  // If tensors have several types, config.json keeps the source's type.
  std::map<std::string, std::string> files =
      model_files(source, config.extent, one_dtype(tensors), config.ends, config.chat_template);
  io::write_model_weights(folder, std::move(tensors), config.max_shard_bytes);
  // Writes config.json last, so that a folder that has it is complete.
  const auto config_file = files.extract("config.json");
  for (const auto& [name, text] : files) write_file_atomic(folder / name, text);
  write_file_atomic(folder / "config.json", config_file.mapped());
}

std::map<std::string, std::string> model_files(const io::ModelFolder& source, Extent extent,
                                               std::optional<at::ScalarType> dtype,
                                               const ResultEnds& ends,
                                               const std::string& chat_template) {
  std::map<std::string, std::string> files;
  for (const char* name : kCopiedFiles) {
    if (auto text = source.text(name)) files.emplace(name, *std::move(text));
  }
  if (extent == Extent::Whole && holds_more_than_text(source))
    for (const char* name : kProcessorFiles)
      if (auto text = source.text(name)) files.emplace(name, *std::move(text));
  files.emplace("config.json", io::sorted_json_text(exported_config(source, extent, dtype), true));
  name_ends(source, ends, files);
  if (!chat_template.empty()) set_chat_template(files, chat_template);
  return files;
}

}  // namespace convoy::models
