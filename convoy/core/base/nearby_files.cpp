// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/nearby_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <vector>

#include "convoy/core/base/suggest.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostNamed = 5;
constexpr size_t kMostLookedAt = 10'000;  // entries of a folder; the rest is not looked at

// Endings of one kind of file: settings, and rows.
constexpr std::array<std::array<std::string_view, 6>, 2> kFileKinds = {
    {{".yaml", ".yml"}, {".jsonl", ".json", ".csv", ".tsv", ".parquet", ".txt"}}};

bool of_one_kind(const fs::path& one, const fs::path& other) {
  const std::string first = one.extension();
  const std::string second = other.extension();
  if (first == second) return true;
  return std::any_of(kFileKinds.begin(), kFileKinds.end(), [&](const auto& kind) {
    const auto has = [&](std::string_view ending) {
      return !ending.empty() && std::find(kind.begin(), kind.end(), ending) != kind.end();
    };
    return has(first) && has(second);
  });
}

fs::path folder_above(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

std::string folder_words(const fs::path& folder) {
  return folder == "." ? "this folder" : folder.string();
}

bool is_near_to(const std::string& wanted, const fs::path& entry) {
  return !nearest_word(wanted, {entry.filename().string()}).empty();
}

// Names of entries, without hidden entries. Empty when the folder cannot be read.
std::vector<std::string> names_in(const fs::path& folder,
                                  const std::function<bool(const fs::directory_entry&)>& is_one) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (size_t seen = 0; !error && entry != fs::directory_iterator() && seen < kMostLookedAt;
       ++seen) {
    const std::string name = entry->path().filename();
    if (!name.starts_with('.') && is_one(*entry)) names.push_back(name);
    entry.increment(error);
  }
  return names;
}

// "FOLDER holds a, b and 3 more", or "" without names.
std::string held_in(const fs::path& folder, std::string_view wanted,
                    std::vector<std::string> names) {
  if (names.empty()) return {};
  names = nearest_first(wanted, std::move(names));
  const size_t hidden = names.size() - std::min(names.size(), kMostNamed);
  names.resize(names.size() - hidden);
  return fmt::format("{} holds {}{}", folder_words(folder), fmt::join(names, ", "),
                     hidden == 0 ? "" : fmt::format(" and {} more", hidden));
}

std::string missing_parent_hint(const fs::path& folder) {
  fs::path missing = folder;
  std::error_code ignored;
  while (missing.has_parent_path() && missing.parent_path() != missing &&
         !fs::exists(missing.parent_path(), ignored))
    missing = missing.parent_path();
  const std::vector<std::string> folders = names_in(folder_above(missing), [](const auto& entry) {
    std::error_code none;
    return entry.is_directory(none);
  });
  return fmt::format("there is no folder `{}`{}", missing.string(),
                     did_you_mean(missing.filename().string(), folders));
}

}  // namespace

std::string unreadable_file_hint(const fs::path& path, int code) {
  if (code == EACCES || code == EPERM) return "run this as a user who may read it";
  if (code == EMFILE || code == ENFILE) return "raise the limit of open files (ulimit -n)";
  if (code != ENOENT && code != ENOTDIR) return "copy the file to another disk and name it there";
  const fs::path folder = folder_above(path);
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) return missing_parent_hint(folder);
  const std::string wanted = path.filename();
  const std::string ending = path.extension();
  const auto is_one = [&](const fs::directory_entry& entry) {
    std::error_code none;
    if (ending.empty()) return entry.path().stem() == wanted || is_near_to(wanted, entry.path());
    return entry.is_regular_file(none) && of_one_kind(path, entry.path());
  };
  const std::string found = held_in(folder, wanted, names_in(folder, is_one));
  if (!found.empty()) return found;
  return fmt::format("{} holds no {}", folder_words(folder),
                     ending.empty() ? "such file" : "file that ends in " + ending);
}

std::string missing_folder_hint(const fs::path& path, std::string_view inside,
                                const std::string& otherwise) {
  const fs::path wanted = path.has_filename() ? path : path.parent_path();
  const fs::path folder = folder_above(wanted);
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) return missing_parent_hint(folder);
  const auto is_one = [&](const fs::directory_entry& entry) {
    std::error_code none;
    return entry.is_directory(none) && fs::exists(entry.path() / inside, none);
  };
  const std::string found = held_in(folder, wanted.filename().string(), names_in(folder, is_one));
  return found.empty() ? otherwise : found;
}

}  // namespace convoy
