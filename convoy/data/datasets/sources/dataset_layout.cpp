// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/sources/dataset_layout.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/lower_case.h"
#include "convoy/data/datasets/formats/byte_stream.h"
#include "convoy/data/datasets/formats/row_source.h"
#include "convoy/data/datasets/sources/dataset_card.h"
#include "convoy/data/datasets/sources/natural_order.h"

namespace convoy::data {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepestFolder = 4;

constexpr std::array<std::pair<std::string_view, const char*>, 10> kSplitWords = {
    {{"train", "train"},
     {"training", "train"},
     {"validation", "validation"},
     {"valid", "validation"},
     {"val", "validation"},
     {"dev", "validation"},
     {"test", "test"},
     {"testing", "test"},
     {"eval", "test"},
     {"evaluation", "test"}}};

const char* known_split(std::string_view word) {
  const auto found = std::find_if(kSplitWords.begin(), kSplitWords.end(),
                                  [&](const auto& known) { return known.first == word; });
  return found == kSplitWords.end() ? nullptr : found->second;
}

// The split that a word in `name` means; empty when there is none.
std::string split_in(std::string_view name) {
  std::string word;
  for (const char letter : lower_case(std::string(name)) + ".") {
    if (letter >= 'a' && letter <= 'z') {
      word += letter;
      continue;
    }
    if (const char* const split = known_split(word)) return split;
    word.clear();
  }
  return {};
}

bool is_data_file(const fs::path& path) {
  const std::string name = path.filename().string();
  constexpr std::array<std::string_view, 4> kDescriptions = {
      "dataset_infos.json", "dataset_info.json", "dataset_dict.json", "state.json"};
  return names_rows(path) && !name.ends_with(".manifest.json") &&
         std::find(kDescriptions.begin(), kDescriptions.end(), name) == kDescriptions.end();
}

// Collects the files as relative paths, in natural order. Links of the hub cache may dangle;
// opening the file reports that.
void collect_files(const fs::path& folder, const fs::path& below, int depth,
                   std::vector<fs::path>& files) {
  for (const auto& entry : fs::directory_iterator(folder / below)) {
    const fs::path name = entry.path().filename();
    if (name.string().starts_with('.') || name.string().starts_with("__")) continue;
    if (entry.is_directory()) {
      if (depth < kDeepestFolder) collect_files(folder, below / name, depth + 1, files);
    } else if (is_data_file(name)) {
      files.push_back(below / name);
    }
  }
}

std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files;
  try {
    collect_files(folder, {}, 0, files);
  } catch (const fs::filesystem_error& error) {
    throw DataError(fmt::format("cannot read the folder: {}", error.code().message()),
                    {.file = folder.string(),
                     .hint = "run this as a user who may read it, or name the files themselves"});
  }
  std::sort(files.begin(), files.end(), [](const fs::path& left, const fs::path& right) {
    return comes_before(left.string(), right.string());
  });
  return files;
}

// The split by the file's name, or else by its nearest folder with the name of a split.
std::string split_of(const fs::path& file) {
  for (fs::path part = file; !part.empty(); part = part.parent_path())
    if (std::string split = split_in(part.filename().string()); !split.empty()) return split;
  return {};
}

// The outermost folder is the config, unless it is `data` or names a split.
std::string config_of(const fs::path& file) {
  if (!file.has_parent_path()) return "default";
  const std::string outermost = file.begin()->string();
  return outermost == "data" || !split_in(outermost).empty() ? "default" : outermost;
}

template <class List>
auto& named(List& list, const std::string& name) {
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const auto& item) { return item.name == name; });
  if (found != list.end()) return *found;
  list.emplace_back().name = name;
  return list.back();
}

// Drops text files beside other files of rows, because they are descriptions.
std::vector<fs::path> rows_or_texts(std::vector<fs::path> files) {
  if (!std::all_of(files.begin(), files.end(), names_text)) std::erase_if(files, names_text);
  return files;
}

std::vector<DatasetConfig> layout_by_names(const fs::path& folder,
                                           const std::vector<fs::path>& all_files) {
  const std::vector<fs::path> files = rows_or_texts(all_files);
  std::vector<DatasetConfig> configs;
  for (const fs::path& file : files)
    named(named(configs, config_of(file)).splits, split_of(file)).files.push_back(folder / file);
  for (DatasetConfig& config : configs) {
    if (config.splits.size() == 1) {
      if (config.splits[0].name.empty()) config.splits[0].name = "train";
    } else {
      std::erase_if(config.splits, [](const DatasetSplit& split) { return split.name.empty(); });
    }
  }
  return configs;
}

DatasetConfig layout_by_card(const fs::path& folder, const std::vector<fs::path>& files,
                             const CardConfig& card) {
  DatasetConfig config{card.name, card.is_default, {}};
  if (card.patterns.empty()) {
    const fs::path inner = folder / card.folder;
    auto inside =
        layout_by_names(inner, fs::is_directory(inner) ? files_of(inner) : std::vector<fs::path>{});
    for (DatasetConfig& part : inside)
      for (DatasetSplit& split : part.splits) {
        auto& target = named(config.splits, split.name).files;
        target.insert(target.end(), split.files.begin(), split.files.end());
      }
    return config;
  }
  for (const auto& [split, pattern] : card.patterns) {
    std::vector<fs::path>& chosen = named(config.splits, split).files;
    for (const fs::path& file : files)
      if (fits_pattern(file.generic_string(), pattern)) chosen.push_back(folder / file);
  }
  return config;
}

}  // namespace

std::vector<DatasetConfig> dataset_layout(const fs::path& folder) {
  const std::vector<fs::path> files = files_of(folder);
  const std::vector<CardConfig> cards = read_dataset_card(folder);
  if (cards.empty()) return layout_by_names(folder, files);
  std::vector<DatasetConfig> configs;
  for (const CardConfig& card : cards) configs.push_back(layout_by_card(folder, files, card));
  return configs;
}

std::string split_named(const std::string& word) {
  const char* const split = known_split(word);
  return split == nullptr ? word : split;
}

}  // namespace convoy::data
