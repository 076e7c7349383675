// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/io/model_folder.h"

#include <algorithm>
#include <set>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/base/nearby_files.h"
#include "convoy/core/io/foreign_checkpoint.h"
#include "convoy/core/io/hub_cache.h"

namespace convoy::io {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr JsonLimits kConfigLimits = {.max_bytes = 4 << 20, .max_depth = 64};
constexpr JsonLimits kIndexLimits = {.max_bytes = 100'000'000};

bool is_pickle_name(const std::string& name) {
  for (const char* ending : {".bin", ".pt", ".pth", ".ckpt", ".pkl"})
    if (name.ends_with(ending)) return true;
  return false;
}

// Compares whole path components. Both paths must be real paths.
bool lies_inside(const fs::path& path, const fs::path& root) {
  const auto [in_root, in_path] = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
  return in_root == root.end();
}

fs::path real_path(const fs::path& path) {
  std::error_code error;
  fs::path real = fs::canonical(path, error);
  if (error)
    throw DataError(
        fmt::format("cannot follow the link: {}", error.message()),
        {.file = path.string(),
         .hint = "the link leads nowhere: put the file itself there, or fetch the model again"});
  return real;
}

// The hint for a name that is neither a folder nor a hub id in the cache.
std::string way_to_model(const std::string& name, const std::string& revision) {
  const std::string command = download_command(name, HubRepository::Model, revision);
  std::error_code ignored;
  const std::string beside = fs::is_directory(fs::path(name).parent_path(), ignored)
                                 ? missing_folder_hint(name, "config.json", "")
                                 : "";
  if (!beside.empty()) return fmt::format("{}; or download it with `{}`", beside, command);
  return fmt::format("download it with `{}`, or give another folder", command);
}

// Throws DataError for a name that is neither a folder nor a GGUF file, and cannot be a hub id.
void refuse_other_names(const std::string& name, const std::string& revision) {
  std::error_code ignored;
  if (fs::exists(name, ignored))
    throw DataError(
        "wanted a model folder or a GGUF file, found another file",
        {.file = name,
         .hint = "name the folder that holds config.json, or a file that ends in .gguf"});
  if (const size_t scheme = name.find("://"); scheme != std::string::npos) {
    const size_t path = name.find('/', scheme + 3);
    const std::string id = path == std::string::npos ? "" : name.substr(path + 1);
    throw DataError("this is an address; a model is named by its folder or its hub id",
                    {.file = name,
                     .hint = looks_like_hub_id(id)
                                 ? fmt::format("name it {}, after `{}`", id,
                                               download_command(id, HubRepository::Model, revision))
                                 : "download it, and name its folder"});
  }
  if (name.ends_with(".gguf"))
    throw DataError("there is no such GGUF file",
                    {.file = name,
                     .hint = "name a file that is there, a folder with config.json, or a hub id "
                             "ORG/NAME"});
  if (!looks_like_hub_id(name))
    throw DataError("there is no such model folder",
                    {.file = name,
                     .hint = missing_folder_hint(
                         name, "config.json",
                         "name a folder with config.json, a GGUF file, or a hub id ORG/NAME")});
}

[[noreturn]] void throw_pickle(const fs::path& file) {
  throw DataError("the weights are a pickle, which can run code and is never read",
                  {.file = file.string(),
                   .hint = "convert it once with Python: load it with transformers and call "
                           "save_pretrained(folder, safe_serialization=True)"});
}

}  // namespace

bool is_single_path_component(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.size() <= 255 &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
}

ModelFolder ModelFolder::locate(const std::string& name, const std::string& revision) {
  ModelFolder folder;
  std::error_code ignored;
  if (fs::is_directory(name, ignored)) {
    folder.path_ = name;
    folder.root_ = real_path(name);
    if (revision != "main")
      folder.notices_.push_back(
          fmt::format("{} is a folder: the revision `{}` is ignored", name, revision));
    // A snapshot of the hub cache given by its path: its files are links into blobs/ beside
    // snapshots/.
    const fs::path repo_folder = folder.root_.parent_path().parent_path();
    if (folder.root_.parent_path().filename() == "snapshots" &&
        repo_folder.filename().string().starts_with("models--")) {
      folder.commit_ = folder.root_.filename();
      folder.root_ = repo_folder;
    }
    return folder;
  }
  if (gguf::is_gguf_file(name)) {
    folder.path_ = name;
    folder.gguf_ = std::make_shared<const gguf::Model>(name);
    folder.notices_ = folder.gguf_->notices();
    return folder;
  }
  refuse_other_names(name, revision);
  const fs::path cache = hub_cache_folder();
  const std::optional<HubSnapshot> snapshot = find_in_hub_cache(name, revision, cache);
  if (!snapshot)
    throw DataError(
        fmt::format(
            "there is no folder `{}`, and the hub cache {} holds no revision `{}` of a model "
            "of that name",
            name, cache.string(), revision),
        {.hint = way_to_model(name, revision)});
  folder.path_ = snapshot->folder;
  folder.root_ = real_path(snapshot->repo_folder);
  folder.commit_ = snapshot->commit;
  return folder;
}

ModelFolder ModelFolder::open_without_config(const std::string& name, const std::string& revision) {
  return locate(name, revision);
}

ModelFolder ModelFolder::open(const std::string& name, const std::string& revision) {
  ModelFolder folder = locate(name, revision);
  if (folder.is_gguf()) {
    const auto read = [&](const char* file) {
      return JsonReader(parse_json(*folder.gguf_->text(file), name, kConfigLimits), name);
    };
    folder.config_.emplace(read("config.json"));
    folder.generation_config_.emplace(read("generation_config.json"));
    return folder;
  }
  if (!folder.find("config.json")) {
    refuse_deepspeed_checkpoint(folder.path_);
    refuse_trainer_output(folder.path_);
    refuse_run_folder(folder.path_);
  }
  const fs::path config = folder.require("config.json");
  if (const auto notice = trainer_checkpoint_notice(folder.path_))
    folder.notices_.push_back(*notice);
  folder.config_.emplace(read_json_file(config, kConfigLimits), config.string());
  if (folder.config_->has("auto_map"))
    folder.notices_.push_back(
        fmt::format("{}: auto_map names Python code; it is ignored, Convoy runs no model code",
                    config.string()));
  if (const auto generation = folder.find("generation_config.json"))
    folder.generation_config_.emplace(read_json_file(*generation, kConfigLimits),
                                      generation->string());
  return folder;
}

const JsonReader& ModelFolder::config() const {
  CONVOY_INVARIANT(config_.has_value(), "{} was opened without its config", path_.string());
  return *config_;
}

std::optional<fs::path> ModelFolder::find(const std::string& file_name) const {
  if (!is_single_path_component(file_name))
    throw DataError(
        fmt::format("wanted a plain file name, found `{:.200}`", file_name),
        {.file = path_.string(),
         .hint = "the model's own files name others by their plain name: fetch the model again"});
  if (is_gguf()) {
    for (const fs::path& file : gguf_->files())
      if (file.filename() == file_name) return file;
    return std::nullopt;
  }
  const fs::path path = path_ / file_name;
  std::error_code ignored;
  const fs::file_status status = fs::symlink_status(path, ignored);
  if (!fs::exists(status)) return std::nullopt;
  fs::path real = path;
  if (fs::is_symlink(status)) {
    real = real_path(path);
    if (!lies_inside(real, root_))
      throw DataError(fmt::format("the link points outside {}", root_.string()),
                      {.file = path.string(), .hint = "put the file itself into the folder"});
  }
  if (!fs::is_regular_file(real, ignored))
    throw DataError(
        "wanted a regular file",
        {.file = path.string(), .hint = "put the file itself there, or fetch the model again"});
  return real;
}

std::optional<std::string> ModelFolder::text(const std::string& file_name) const {
  if (is_gguf()) return gguf_->text(file_name);
  const std::optional<fs::path> file = find(file_name);
  return file ? std::optional(read_file(*file)) : std::nullopt;
}

fs::path ModelFolder::require(const std::string& file_name) const {
  std::optional<fs::path> found = find(file_name);
  if (!found)
    throw DataError(fmt::format("the folder has no {}", file_name),
                    {.file = path_.string(),
                     .hint = "name the folder that holds it, or fetch the model again"});
  return *found;
}

std::map<std::string, std::string> ModelFolder::read_weight_map() const {
  const fs::path path = require(kIndexFile);
  const JsonReader index(read_json_file(path, kIndexLimits), path.string());
  const JsonReader weight_map = index.require_object("weight_map");
  if (weight_map.value().empty()) index.fail("weight_map", "is empty");
  std::map<std::string, std::string> shard_by_tensor;
  for (const auto& [tensor, shard] : weight_map.value().items()) {
    if (!shard.is_string()) weight_map.fail(tensor, "wanted the name of a shard");
    const std::string name = shard.get<std::string>();
    if (!is_single_path_component(name))
      weight_map.fail(tensor, fmt::format("wanted a plain file name, found `{:.200}`", name));
    if (is_pickle_name(name)) throw_pickle(path_ / name);
    shard_by_tensor.emplace(tensor, name);
  }
  return shard_by_tensor;
}

std::vector<std::string> ModelFolder::weight_file_names() const {
  if (is_gguf()) {
    std::vector<std::string> names;
    for (const fs::path& file : gguf_->files()) names.push_back(file.filename());
    return names;
  }
  if (find(kSingleFile)) return {kSingleFile};
  if (find(kIndexFile)) {
    std::set<std::string> shards;
    for (const auto& [tensor, shard] : read_weight_map()) shards.insert(shard);
    return {shards.begin(), shards.end()};
  }
  refuse_deepspeed_checkpoint(path_);
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(path_, ignored))
    if (is_pickle_name(entry.path().filename())) throw_pickle(entry.path());
  throw DataError(fmt::format("the folder has neither {} nor {}", kSingleFile, kIndexFile),
                  {.file = path_.string(),
                   .hint = "name the folder that holds the weights, or fetch the model again"});
}

}  // namespace convoy::io
