// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/sources/dataset.h"

#include <glob.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/base/nearby_files.h"
#include "convoy/core/base/suggest.h"
#include "convoy/core/io/hub_cache.h"
#include "convoy/data/datasets/formats/byte_stream.h"
#include "convoy/data/datasets/sources/dataset_layout.h"
#include "convoy/data/datasets/sources/natural_order.h"

namespace convoy::data {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

template <class List>
std::string names_of(const List& list) {
  std::string names;
  for (const auto& item : list)
    names += fmt::format("{}`{}`", names.empty() ? "" : ", ", item.name);
  return names;
}

template <class List>
auto* find_named(const List& list, const std::string& name) {
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const auto& item) { return item.name == name; });
  return found == list.end() ? nullptr : &*found;
}

const DatasetConfig& choose_config(const std::vector<DatasetConfig>& configs,
                                   const Dataset& dataset, const std::string& asked,
                                   const fs::path& folder) {
  if (!asked.empty()) {
    if (const DatasetConfig* const config = find_named(configs, asked)) return *config;
    throw DataError(fmt::format("the data set has no config `{}`", asked),
                    {.file = folder.string(), .hint = "it has " + names_of(configs)});
  }
  if (configs.size() == 1) return configs[0];
  if (dataset.known != nullptr)
    if (const DatasetConfig* const config = find_named(configs, dataset.known->config))
      return *config;
  for (const DatasetConfig& config : configs)
    if (config.is_default) return config;
  if (const DatasetConfig* const config = find_named(configs, "default")) return *config;
  throw DataError(
      fmt::format("the data set has {} configs, and none is named", configs.size()),
      {.file = folder.string(),
       .hint = fmt::format("name one with --config: {}; a command without --config takes one of "
                           "its files",
                           names_of(configs))});
}

const DatasetSplit& choose_split(const DatasetConfig& config, const std::string& asked,
                                 const fs::path& folder) {
  if (!asked.empty()) {
    const DatasetSplit* split = find_named(config.splits, asked);
    for (const DatasetSplit& other : config.splits)
      if (split == nullptr && split_named(other.name) == split_named(asked)) split = &other;
    if (split != nullptr) return *split;
    throw DataError(fmt::format("the data set has no split `{}`", asked),
                    {.file = folder.string(), .hint = "it has " + names_of(config.splits)});
  }
  if (config.splits.size() == 1) return config.splits[0];
  if (const DatasetSplit* const split = find_named(config.splits, "train")) return *split;
  throw DataError(
      "the data set has several splits, none of them train, and none is named",
      {.file = folder.string(), .hint = "name one with --split: " + names_of(config.splits)});
}

void require_one_format(const std::vector<fs::path>& files, const fs::path& folder) {
  const auto suffix_of = [](const fs::path& file) { return without_compression(file).extension(); };
  for (const fs::path& file : files)
    if (suffix_of(file) != suffix_of(files[0]))
      throw DataError(fmt::format("the split mixes formats: {} and {}",
                                  files[0].filename().string(), file.filename().string()),
                      {.file = folder.string(),
                       .hint = fmt::format("name the files of one, such as \"{}/*{}\"",
                                           folder.string(), suffix_of(files[0]).string())});
}

// In the cache, the files of a snapshot are links to blobs beside it. A link that leads elsewhere
// does not come from a download.
void require_whole_snapshot(const std::vector<fs::path>& files, const DatasetFolder& folder,
                            const std::string& revision) {
  const std::string root = fs::weakly_canonical(folder.repository).string() + "/";
  for (const fs::path& file : files) {
    std::error_code ignored;
    if (!fs::is_regular_file(file, ignored))
      throw DataError(
          "the file is not in the cache: its download is not whole",
          {.file = file.string(), .hint = dataset_download_hint(folder.hub_id, revision)});
    if (!fs::weakly_canonical(file).string().starts_with(root))
      throw DataError("the link leaves the folder of its data set",
                      {.file = file.string(),
                       .hint = "put the file itself there, or fetch the data set again"});
  }
}

void use_folder(Dataset& dataset, const DatasetRequest& request, const DatasetFolder& folder) {
  const std::vector<DatasetConfig> configs = dataset_layout(folder.path);
  if (configs.empty())
    throw DataError("the folder holds no file of rows",
                    {.file = folder.path.string(), .hint = "wanted " + known_row_formats()});
  const DatasetConfig& config = choose_config(configs, dataset, request.config, folder.path);
  const DatasetSplit& split = choose_split(config, request.split, folder.path);
  if (split.files.empty())
    throw DataError(
        fmt::format("the card names files for the split `{}` that are not here", split.name),
        {.file = (folder.path / "README.md").string(), .hint = "the download is not whole"});
  require_one_format(split.files, folder.path);
  if (!folder.commit.empty()) require_whole_snapshot(split.files, folder, request.revision);
  dataset.hub_id = folder.hub_id;
  dataset.commit = folder.commit;
  dataset.config = config.name;
  dataset.split = split.name;
  dataset.files = split.files;
}

std::optional<DatasetFolder> find_by_id(const std::string& hub_id, const std::string& revision) {
  const auto snapshot =
      io::find_in_hub_cache(hub_id, revision, io::hub_cache_folder(), io::HubRepository::Dataset);
  if (snapshot)
    return DatasetFolder{snapshot->folder, hub_id, snapshot->commit, snapshot->repo_folder};
  // The id may be a clone in the working directory.
  if (hub_id.find('/') != std::string::npos && is_folder(hub_id))
    return DatasetFolder{hub_id, hub_id, {}, {}};
  return std::nullopt;
}

std::vector<std::string> known_keys() {
  std::vector<std::string> keys;
  for (const KnownDataset& known : known_datasets()) keys.emplace_back(known.key);
  return keys;
}

[[noreturn]] void refuse_absent(const DatasetRequest& request, const KnownDataset* known) {
  const std::string& name = request.name;
  if (name.find("://") != std::string::npos)
    throw DataError(
        "this is an address, and rows are read from files of this machine",
        {.file = name, .hint = "download it, and name the file: " + known_row_formats()});
  const fs::path path(name);
  const bool may_be_id =
      known != nullptr || (io::looks_like_hub_id(name) && !names_rows(path) &&
                           (!path.has_parent_path() || !is_there(path.parent_path())));
  if (!may_be_id)
    throw DataError("cannot read the file: No such file or directory",
                    {.file = name, .hint = unreadable_file_hint(path, ENOENT)});
  const std::string hub_id = known == nullptr ? name : known->hub_ids[0];
  const std::string nearest = known == nullptr ? nearest_word(name, known_keys()) : "";
  throw DataError(
      fmt::format("there is no such file, and no data set `{}` (revision {}) in the local hub "
                  "cache {}",
                  hub_id, request.revision, io::hub_cache_folder().string()),
      {.file = name,
       .hint = nearest.empty() ? dataset_download_hint(hub_id, request.revision)
                               : fmt::format("did you mean `{}`? `convoy process --list-datasets` "
                                             "lists the short names",
                                             nearest)});
}

std::vector<fs::path> matching_files(const std::string& pattern) {
  ::glob_t found{};
  const int status = ::glob(pattern.c_str(), GLOB_BRACE | GLOB_TILDE, nullptr, &found);
  std::vector<fs::path> files;
  if (status == 0) files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  std::erase_if(files, is_folder);
  if (files.empty())
    throw DataError("no file fits the pattern",
                    {.file = pattern, .hint = "put the pattern in quotes, and check it with ls"});
  std::sort(files.begin(), files.end(), [](const fs::path& left, const fs::path& right) {
    return comes_before(left.string(), right.string());
  });
  return files;
}

bool is_pattern(const std::string& name) { return name.find_first_of("*?[{") != std::string::npos; }

bool names_files(const std::string& name) {
  return is_there(name) || is_pattern(name) || name.find(',') != std::string::npos;
}

void use_files(Dataset& dataset, const DatasetRequest& request) {
  for (const std::string& part : listed_names(request.name)) {
    if (is_folder(part))
      throw DataError("a list names files, and this is a folder",
                      {.file = part, .hint = "name the folder alone, or its files"});
    if (!is_there(part) && !is_pattern(part))
      throw DataError("cannot read the file: No such file or directory",
                      {.file = part, .hint = unreadable_file_hint(part, ENOENT)});
    for (const fs::path& file : is_there(part) ? std::vector<fs::path>{part} : matching_files(part))
      dataset.files.push_back(file);
  }
}

void refuse_parts_of_files(const DatasetRequest& request) {
  const bool is_all = request.split.empty() || split_named(request.split) == "train";
  if (is_all && request.config.empty()) return;
  throw DataError(fmt::format("files named one by one have no {}",
                              request.config.empty() ? "split `" + request.split + "`"
                                                     : "config `" + request.config + "`"),
                  {.file = request.name, .hint = "name the files of the rows that you want"});
}

void require_regular(const std::vector<fs::path>& files) {
  for (const fs::path& file : files) compression_of(file);
}

// The rows of several files as one sequence.
class ShardedRows : public RowSource {
 public:
  ShardedRows(const Dataset& dataset, RowRange range)
      : files_(dataset.files),
        text_rows_(dataset.text_rows),
        first_(range.first),
        end_(range.count < 0 ? INT64_MAX
                             : range.first + std::min(range.count, INT64_MAX - range.first)) {}

  std::optional<Row> next() override {
    std::optional<RawRow> raw = next_raw();
    if (!raw) return std::nullopt;
    row_is_lost_ = true;  // in case the text is no JSON
    return parse_row(std::move(*raw));
  }

  std::optional<RawRow> next_raw() override {
    row_is_lost_ = false;
    if (index_ < first_) skip_to_first();
    if (index_ >= end_) return std::nullopt;
    while (open_next()) {
      try {
        std::optional<RawRow> raw = shard_->next_raw();
        if (raw) {
          raw->row.index = index_++;
          return raw;
        }
      } catch (const DataError&) {
        row_is_lost_ = shard_->row_is_lost();
        index_ += row_is_lost_;
        throw;
      }
      shard_.reset();
    }
    return std::nullopt;
  }

  int64_t skip(int64_t count) override {
    if (index_ < first_) skip_to_first();
    return pass_over(std::min(count, end_ - index_));
  }

  bool row_is_lost() const override { return row_is_lost_; }
  std::string lost_row() const override { return shard_ ? shard_->lost_row() : std::string(); }

 private:
  // Opens the next shard. Returns false when there is none.
  bool open_next() {
    if (shard_) return true;
    if (at_ == files_.size()) return false;
    shard_ = open_rows(files_[at_++], text_rows_);
    return true;
  }

  int64_t pass_over(int64_t count) {
    int64_t passed = 0;
    while (passed < count && open_next()) {
      passed += shard_->skip(count - passed);
      if (passed < count) shard_.reset();
    }
    index_ += passed;
    return passed;
  }

  void skip_to_first() {
    const int64_t rows = pass_over(first_ - index_);
    if (index_ < first_)
      throw DataError(fmt::format("the data set has {}, but row {} was to be the first",
                                  counted(rows, "row"), first_),
                      {.file = files_[0].string(), .hint = "rows count from 0"});
  }

  std::vector<fs::path> files_;
  TextRows text_rows_;
  int64_t first_;
  int64_t end_;    // index behind the last row
  size_t at_ = 0;  // index of the next file to open
  std::unique_ptr<RowSource> shard_;
  int64_t index_ = 0;  // index of the next row
  bool row_is_lost_ = false;
};

}  // namespace

std::optional<DatasetFolder> find_dataset_folder(const DatasetRequest& request) {
  if (is_folder(request.name)) return DatasetFolder{request.name, {}, {}, {}};
  if (is_there(request.name)) return std::nullopt;
  if (const auto folder = find_by_id(request.name, request.revision)) return folder;
  if (const KnownDataset* const known = find_known_dataset(request.name))
    for (const char* const hub_id : known->hub_ids)
      if (const auto folder = find_by_id(hub_id, request.revision)) return folder;
  return std::nullopt;
}

std::vector<std::string> listed_names(const std::string& name) {
  std::vector<std::string> parts(1);
  int braces = 0;
  for (const char letter : name) {
    braces += letter == '{';
    braces -= letter == '}';
    if (letter == ',' && braces == 0) {
      parts.emplace_back();
    } else {
      parts.back() += letter;
    }
  }
  return parts;
}

Dataset find_dataset(const DatasetRequest& request) {
  if (request.name.empty())
    throw DataError("no data set given",
                    {.hint = "name a file, a folder, or one of --list-datasets"});
  Dataset dataset;
  dataset.name = request.name;
  dataset.text_rows = request.text_rows;
  dataset.known = find_known_dataset(request.name);
  if (const auto folder = find_dataset_folder(request)) {
    use_folder(dataset, request, *folder);
  } else if (names_files(request.name)) {
    refuse_parts_of_files(request);
    use_files(dataset, request);
  } else {
    refuse_absent(request, dataset.known);
  }
  require_regular(dataset.files);
  return dataset;
}

std::unique_ptr<RowSource> open_dataset(const Dataset& dataset, RowRange range) {
  if (range.first < 0)
    throw ConfigError(fmt::format("the first row is {}, wanted 0 or more", range.first),
                      {.hint = "rows count from 0"});
  return std::make_unique<ShardedRows>(dataset, range);
}

std::string dataset_download_hint(const std::string& hub_id, const std::string& revision) {
  return fmt::format("fetch it with `{}`",
                     io::download_command(hub_id, io::HubRepository::Dataset, revision));
}

std::string dataset_hash(const Dataset& dataset) {
  if (dataset.files.size() == 1) return sha256_hex_of_file(dataset.files[0]);
  Sha256 hash;
  for (const fs::path& file : dataset.files)
    hash.update(sha256_hex_of_file(file) + without_compression(file).extension().string() + "\n");
  return hash.hex();
}

}  // namespace convoy::data
