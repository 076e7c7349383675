// SPDX-License-Identifier: Apache-2.0
#include "convoy/models/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/device/dtype.h"
#include "convoy/device/stored_tensor.h"
#include "convoy/io/json_text.h"
#include "convoy/models/registry.h"

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

constexpr int64_t kPieceElements = int64_t{1} << 20;

// Converted piece by piece while it is written: a second copy of the model never exists.
io::TensorSource write_as(const std::string& name, const at::Tensor& value, at::ScalarType dtype) {
  const at::Tensor source = value.detach();
  return {.name = name,
          .dtype = device::stored_dtype(dtype),
          .shape = source.sizes().vec(),
          .produce = [source, dtype](const io::ByteSink& sink) {
            const at::Tensor flat = source.contiguous().view({-1});
            for (int64_t begin = 0; begin < flat.numel(); begin += kPieceElements) {
              const int64_t count = std::min(kPieceElements, flat.numel() - begin);
              const at::Tensor piece = flat.narrow(0, begin, count).to(dtype).contiguous();
              sink({static_cast<const std::byte*>(piece.const_data_ptr()), piece.nbytes()});
            }
          }};
}

// A nested text model stands on its own in the export: its config moves up, with what it inherited.
nlohmann::json unnested(const nlohmann::json& config) {
  nlohmann::json text = config.at("text_config");
  text["model_type"] = "gemma3_text";
  for (const char* key : {"tie_word_embeddings", "eos_token_id", "bos_token_id", "pad_token_id"}) {
    if (config.contains(key)) text[key] = config.at(key);
  }
  return text;
}

nlohmann::json exported_config(const io::ModelFolder& source, at::ScalarType dtype) {
  nlohmann::json config = source.config().value();
  if (config.contains("text_config")) config = unnested(config);
  const std::string name = dtype == at::kFloat ? "float32" : "bfloat16";
  config["architectures"] = {architecture_name(source)};
  config.erase("auto_map");  // its code is not part of the export
  if (config.contains("dtype")) {
    config["dtype"] = name;
    config.erase("torch_dtype");
  } else {
    config["torch_dtype"] = name;
  }
  return config;
}

}  // namespace

void export_model(nn::CausalLm& model, const io::ModelFolder& source,
                  const std::filesystem::path& folder, const ExportConfig& config) {
  CONVOY_CHECK(config.dtype == at::kFloat || config.dtype == at::kBFloat16, ConfigError,
               "models are written in fp32 or bf16, not {}", at::toString(config.dtype));
  std::vector<io::TensorSource> tensors;
  for (const nn::NamedTensor& parameter : model.parameters()) {
    tensors.push_back(write_as(parameter.name, parameter.value, config.dtype));
  }
  io::write_model_weights(folder, std::move(tensors), config.max_shard_bytes);
  // config.json last, so that a folder that has one is a whole one.
  std::map<std::string, std::string> files = model_files(source, config.dtype);
  const auto config_file = files.extract("config.json");
  for (const auto& [name, text] : files) write_file_atomic(folder / name, text);
  write_file_atomic(folder / "config.json", config_file.mapped());
}

std::map<std::string, std::string> model_files(const io::ModelFolder& source,
                                               at::ScalarType dtype) {
  std::map<std::string, std::string> files;
  for (const char* name : kCopiedFiles) {
    if (const auto file = source.find(name)) files.emplace(name, read_file(*file));
  }
  files.emplace("config.json", io::sorted_json_text(exported_config(source, dtype), true));
  return files;
}

}  // namespace convoy::models
