// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/io/hub_cache.h"

#include <algorithm>

#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"

namespace convoy::io {
namespace {

namespace fs = std::filesystem;

bool is_hub_name_part(std::string_view part) {
  return !part.empty() && part != "." && part != ".." && part.size() <= 96 &&
         std::all_of(part.begin(), part.end(), [](unsigned char letter) {
           return std::isalnum(letter) || letter == '-' || letter == '_' || letter == '.';
         });
}

std::string trimmed(std::string text) {
  text.erase(text.find_last_not_of(" \r\n\t") + 1);
  return text;
}

}  // namespace

fs::path hub_home_folder() {
  if (const std::string home = environment_text("HF_HOME"); !home.empty()) return home;
  if (const std::string cache = environment_text("XDG_CACHE_HOME"); !cache.empty())
    return fs::path(cache) / "huggingface";
  return fs::path(environment_text("HOME")) / ".cache" / "huggingface";
}

fs::path hub_cache_folder() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (const std::string value = environment_text(name); !value.empty()) return value;
  return hub_home_folder() / "hub";
}

std::string hub_folder_name(const std::string& hub_id, HubRepository repository) {
  std::string name = (repository == HubRepository::Model ? "models--" : "datasets--") + hub_id;
  if (const size_t slash = name.find('/'); slash != std::string::npos) name.replace(slash, 1, "--");
  return name;
}

bool looks_like_hub_revision(std::string_view revision) {
  while (true) {
    const size_t slash = revision.find('/');
    if (!is_hub_name_part(revision.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    revision.remove_prefix(slash + 1);
  }
}

bool looks_like_hub_id(std::string_view name) {
  const size_t slash = name.find('/');
  if (slash == std::string_view::npos) return is_hub_name_part(name);
  return is_hub_name_part(name.substr(0, slash)) && is_hub_name_part(name.substr(slash + 1));
}

std::optional<HubSnapshot> find_in_hub_cache(const std::string& hub_id, const std::string& revision,
                                             const fs::path& cache, HubRepository repository) {
  if (!looks_like_hub_id(hub_id) || !looks_like_hub_revision(revision)) return std::nullopt;
  const fs::path repo_folder = cache / hub_folder_name(hub_id, repository);
  std::string commit = revision;
  const fs::path ref = repo_folder / "refs" / revision;
  std::error_code ignored;
  if (fs::is_regular_file(ref, ignored)) commit = trimmed(read_file(ref, 1024));
  if (!is_hub_name_part(commit)) return std::nullopt;
  const fs::path snapshot = repo_folder / "snapshots" / commit;
  if (!fs::is_directory(snapshot, ignored)) return std::nullopt;
  return HubSnapshot{snapshot, repo_folder, commit};
}

std::string download_command(const std::string& hub_id, HubRepository repository,
                             const std::string& revision) {
  std::string command = fmt::format("convoy {} fetch {}",
                                    repository == HubRepository::Model ? "models" : "data", hub_id);
  if (revision != "main") command += " --revision " + revision;
  return command;
}

}  // namespace convoy::io
