// SPDX-License-Identifier: Apache-2.0
//
// A model folder in Hugging Face layout, treated as untrusted. Names in it are single path
// components, links must stay inside the folder (or its hub cache entry), and no code in it is run.
// A GGUF file is such a folder too: its small files are made from the file's metadata.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "convoy/core/io/gguf/model.h"
#include "convoy/core/io/json_reader.h"
#include "convoy/core/io/safetensors.h"

namespace convoy::io {

class ModelFolder {
 public:
  // `name`: a folder, a GGUF file, or a hub id in the local hub cache. Reads config.json and
  // generation_config.json, not the weights. Throws DataError; for a missing hub id it names the
  // command that downloads it.
  static ModelFolder open(const std::string& name, const std::string& revision = "main");
  // Opens a folder without config.json (a PEFT adapter).
  static ModelFolder open_without_config(const std::string& name,
                                         const std::string& revision = "main");

  // The folder, or the file if the model is a GGUF file.
  const std::filesystem::path& path() const { return path_; }
  bool is_gguf() const { return gguf_ != nullptr; }
  const std::string& commit() const { return commit_; }  // hub commit, or "" for a plain folder
  const JsonReader& config() const;  // config.json. Throws StateError after open_without_config
  const std::optional<JsonReader>& generation_config() const { return generation_config_; }
  const std::vector<std::string>& notices() const { return notices_; }  // to show the user once

  // The whole text of a small file of the folder. Empty when the file is absent. Throws DataError
  // as find() does.
  std::optional<std::string> text(const std::string& file_name) const;
  // The real path of a file in the folder, links resolved. Empty when absent. Throws DataError when
  // `file_name` is no single path component or a link leaves the folder. In a GGUF file only the
  // files of its weights are found.
  std::optional<std::filesystem::path> find(const std::string& file_name) const;
  std::filesystem::path require(
      const std::string& file_name) const;  // throws DataError when absent

  // The names of model.safetensors, of the shards that model.safetensors.index.json lists (sorted),
  // or of the GGUF files. Throws DataError when there are none, with a hint when the folder holds
  // only pickle files.
  std::vector<std::string> weight_file_names() const;

 private:
  ModelFolder() = default;
  static ModelFolder locate(const std::string& name, const std::string& revision);
  friend class ModelWeights;
  std::map<std::string, std::string> read_weight_map() const;  // tensor -> shard

  std::filesystem::path path_;
  std::filesystem::path root_;  // real path that links may not leave
  std::string commit_;
  std::shared_ptr<const gguf::Model> gguf_;  // null: the model is a folder
  std::optional<JsonReader> config_;
  std::optional<JsonReader> generation_config_;
  std::vector<std::string> notices_;
};

// Every tensor of a folder's weight files, mapped. Index and shards must agree exactly.
class ModelWeights {
 public:
  explicit ModelWeights(const ModelFolder& folder);  // throws DataError
  // Opens a single safetensors file (adapter_model.safetensors).
  explicit ModelWeights(const std::filesystem::path& file);

  const TensorView* find(const std::string& name) const;  // nullptr when absent
  const TensorView& require(const std::string& name) const;
  const std::vector<std::string>& names() const { return names_; }  // sorted
  int64_t total_bytes() const;

 private:
  void add(std::unique_ptr<SafetensorsFile> file);
  void add(const TensorView& tensor);

  std::string place_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::shared_ptr<const gguf::Model> gguf_;  // null: weights are in `files_`
  std::unordered_map<std::string, const TensorView*> by_name_;
  std::vector<std::string> names_;
};

// Writes model.safetensors. If the tensors take more than max_shard_bytes, it writes
// model-0000i-of-0000N.safetensors instead, and last model.safetensors.index.json. `tensors` fill
// shards in the order given. Returns the file names written. Throws IoError.
std::vector<std::string> write_model_weights(const std::filesystem::path& folder,
                                             std::vector<TensorSource> tensors,
                                             int64_t max_shard_bytes = 5'000'000'000);
// Makes the same calls of `produce`, in the same order, without writing a file. For ranks that do
// not write, when `produce` is collective.
void produce_model_weights(std::vector<TensorSource> tensors, int64_t max_shard_bytes);

// True for "model.safetensors", false for "", ".", "..", "a/b", "a\\b" and names with NUL.
bool is_single_path_component(const std::string& name);

}  // namespace convoy::io
