// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/io/model_folder.h"

namespace convoy::io {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSingleWeightsFile = "model.safetensors";
constexpr const char* kWeightsIndexFile = "model.safetensors.index.json";

bool is_digits(std::string_view text) {
  return text.size() == 5 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "model-00001-of-00003.safetensors"
bool is_shard_name(std::string_view name) {
  return name.size() == 32 && name.starts_with("model-") && is_digits(name.substr(6, 5)) &&
         name.substr(11, 4) == "-of-" && is_digits(name.substr(15, 5)) &&
         name.ends_with(".safetensors");
}

// Removes weights of an earlier export with another layout, which would be read instead of, or
// beside, the new ones.
void remove_other_weights(const fs::path& folder, const std::set<std::string>& written) {
  std::vector<fs::path> others;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename();
    const bool is_weights =
        name == kSingleWeightsFile || name == kWeightsIndexFile || is_shard_name(name);
    if (is_weights && !written.contains(name)) others.push_back(entry->path());
  }
  if (error)
    throw IoError(fmt::format("could not list the folder: {}", error.message()),
                  {.file = folder.string(), .hint = "check its permissions"});
  for (const fs::path& path : others) {
    fs::remove(path, error);
    if (error)
      throw IoError(
          fmt::format("could not remove the older weights: {}", error.message()),
          {.file = path.string(), .hint = "allow writing into the folder, or name another output"});
  }
}

std::vector<std::vector<TensorSource>> split_into_shards(std::vector<TensorSource> tensors,
                                                         int64_t max_shard_bytes) {
  std::vector<std::vector<TensorSource>> shards(1);
  int64_t shard_bytes = 0;
  for (TensorSource& tensor : tensors) {
    const int64_t bytes = tensor.num_bytes();
    if (!shards.back().empty() && shard_bytes + bytes > max_shard_bytes) {
      shards.emplace_back();
      shard_bytes = 0;
    }
    shard_bytes += bytes;
    shards.back().push_back(std::move(tensor));
  }
  return shards;
}

}  // namespace

ModelWeights::ModelWeights(const fs::path& file) : place_(file.string()) {
  add(std::make_unique<SafetensorsFile>(file));
  std::sort(names_.begin(), names_.end());
}

ModelWeights::ModelWeights(const ModelFolder& folder) : place_(folder.path().string()) {
  if (folder.is_gguf()) {
    gguf_ = folder.gguf_;
    for (const TensorView& tensor : gguf_->tensors()) add(tensor);
    std::sort(names_.begin(), names_.end());
    return;
  }
  const std::vector<std::string> files = folder.weight_file_names();
  const bool sharded = !(files.size() == 1 && files.front() == kSingleWeightsFile &&
                         folder.find(kSingleWeightsFile));
  if (!sharded) {
    add(std::make_unique<SafetensorsFile>(folder.require(kSingleWeightsFile)));
    std::sort(names_.begin(), names_.end());
    return;
  }
  const std::map<std::string, std::string> shard_by_tensor = folder.read_weight_map();
  for (const std::string& name : files) {
    const std::optional<fs::path> path = folder.find(name);
    if (!path)
      throw DataError(fmt::format("the shard {} named by {} is missing", name, kWeightsIndexFile),
                      {.file = (folder.path() / name).string(), .hint = "fetch the model again"});
    auto shard = std::make_unique<SafetensorsFile>(*path);
    for (const TensorView& tensor : shard->tensors()) {
      const auto entry = shard_by_tensor.find(tensor.name);
      if (entry == shard_by_tensor.end() || entry->second != name)
        throw DataError(fmt::format("the shard {} holds the tensor `{:.200}`, which {} {}", name,
                                    tensor.name, kWeightsIndexFile,
                                    entry == shard_by_tensor.end() ? "does not name"
                                                                   : "puts into " + entry->second),
                        {.file = path->string(),
                         .key = tensor.name,
                         .hint = "shards and index are of two models: fetch the model again"});
    }
    add(std::move(shard));
  }
  for (const auto& [tensor, shard] : shard_by_tensor)
    if (find(tensor) == nullptr)
      throw DataError(fmt::format("{} puts the tensor `{:.200}` into {}, which lacks it",
                                  kWeightsIndexFile, tensor, shard),
                      {.file = (folder.path() / shard).string(),
                       .key = tensor,
                       .hint = "fetch the model again"});
  std::sort(names_.begin(), names_.end());
}

void ModelWeights::add(std::unique_ptr<SafetensorsFile> file) {
  for (const TensorView& tensor : file->tensors()) add(tensor);
  files_.push_back(std::move(file));
}

void ModelWeights::add(const TensorView& tensor) {
  by_name_.emplace(tensor.name, &tensor);
  names_.push_back(tensor.name);
}

const TensorView* ModelWeights::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

const TensorView& ModelWeights::require(const std::string& name) const {
  const TensorView* view = find(name);
  if (view == nullptr)
    throw DataError(
        fmt::format("the weights lack the tensor `{}`", name),
        {.file = place_,
         .key = name,
         .hint = "config.json asks for it: fetch the model again, or correct config.json"});
  return *view;
}

int64_t ModelWeights::total_bytes() const {
  int64_t bytes = 0;
  for (const auto& [name, view] : by_name_) bytes += std::ssize(view->bytes);
  return bytes;
}

void produce_model_weights(std::vector<TensorSource> tensors, int64_t max_shard_bytes) {
  for (std::vector<TensorSource>& shard : split_into_shards(std::move(tensors), max_shard_bytes))
    stream_safetensors(std::move(shard), [](std::span<const std::byte>) {});
}

std::vector<std::string> write_model_weights(const fs::path& folder,
                                             std::vector<TensorSource> tensors,
                                             int64_t max_shard_bytes) {
  std::vector<std::vector<TensorSource>> shards =
      split_into_shards(std::move(tensors), max_shard_bytes);
  std::vector<std::string> written;
  if (shards.size() == 1) {
    write_safetensors(folder / kSingleWeightsFile, std::move(shards.front()));
    written = {kSingleWeightsFile};
  } else {
    nlohmann::json weight_map = nlohmann::json::object();
    int64_t total_bytes = 0;
    for (size_t index = 0; index < shards.size(); ++index) {
      const std::string name =
          fmt::format("model-{:05}-of-{:05}.safetensors", index + 1, shards.size());
      for (const TensorSource& tensor : shards[index]) {
        weight_map[tensor.name] = name;
        total_bytes += tensor.num_bytes();
      }
      write_safetensors(folder / name, std::move(shards[index]));
      written.push_back(name);
    }
    const nlohmann::json index = {{"metadata", {{"total_size", total_bytes}}},
                                  {"weight_map", weight_map}};
    write_file_atomic(folder / kWeightsIndexFile, sorted_json_text(index, true));
    written.push_back(kWeightsIndexFile);
  }
  remove_other_weights(folder, {written.begin(), written.end()});
  return written;
}

}  // namespace convoy::io
