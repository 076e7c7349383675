// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/io/model_fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "convoy/core/base/files.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/io/foreign_checkpoint.h"

namespace convoy::io {
namespace {

std::string file_ends(const std::filesystem::path& path) {
  constexpr int64_t kEndBytes = 1 << 20;
  std::ifstream file(path, std::ios::binary);
  const auto size_bytes = static_cast<int64_t>(std::filesystem::file_size(path));
  std::string bytes(static_cast<size_t>(std::min(size_bytes, kEndBytes)), '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  std::string tail = bytes;
  file.seekg(size_bytes - static_cast<int64_t>(tail.size()));
  file.read(tail.data(), static_cast<std::streamsize>(tail.size()));
  return bytes + tail;
}

}  // namespace

std::string model_fingerprint(const ModelFolder& folder) {
  if (!folder.commit().empty()) return folder.commit();
  Sha256 hash;
  const std::optional<std::string> config = folder.text("config.json");
  if (!config) folder.require("config.json");  // throws
  hash.update(*config);
  for (const std::string& name : folder.weight_file_names()) {
    const std::filesystem::path path = folder.require(name);
    hash.update(fmt::format("{}:{}\n", name, std::filesystem::file_size(path)));
    hash.update(file_ends(path));
  }
  return hash.hex();
}

ModelFolder folder_of_weights(const std::string& name) {
  return ModelFolder::open(base_of_adapter_folder(name).value_or(name));
}

std::string fingerprint_of_named(const std::string& name) {
  const std::string model = model_fingerprint(folder_of_weights(name));
  return base_of_adapter_folder(name) ? model + " " + adapter_fingerprint(name) : model;
}

std::string adapter_fingerprint(const std::filesystem::path& adapter) {
  if (gguf::is_gguf_file(adapter)) return sha256_hex_of_file(adapter);
  const ModelFolder folder = ModelFolder::open_without_config(adapter.string());
  Sha256 hash;
  for (const char* name : {"adapter_config.json", "adapter_model.safetensors"})
    hash.update(sha256_hex_of_file(folder.require(name)));
  return hash.hex();
}

}  // namespace convoy::io
