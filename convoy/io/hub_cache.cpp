// SPDX-License-Identifier: Apache-2.0
#include "convoy/io/hub_cache.h"

#include <algorithm>
#include <cstdlib>

#include "convoy/base/error.h"
#include "convoy/base/files.h"

namespace convoy::io {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_hub_name_part(std::string_view part) {
  return !part.empty() && part != "." && part != ".." && part.size() <= 96 &&
         std::all_of(part.begin(), part.end(), [](unsigned char letter) {
           return std::isalnum(letter) || letter == '-' || letter == '_' || letter == '.';
         });
}

// Branches may hold slashes ("refs/pr/1"); no part may climb out of refs/.
bool is_safe_revision(std::string_view revision) {
  while (true) {
    const size_t slash = revision.find('/');
    if (!is_hub_name_part(revision.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    revision.remove_prefix(slash + 1);
  }
}

std::string trimmed(std::string text) {
  text.erase(text.find_last_not_of(" \r\n\t") + 1);
  return text;
}

}  // namespace

fs::path hub_cache_folder() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (const std::string value = environment(name); !value.empty()) return value;
  if (const std::string home = environment("HF_HOME"); !home.empty()) return fs::path(home) / "hub";
  if (const std::string cache = environment("XDG_CACHE_HOME"); !cache.empty())
    return fs::path(cache) / "huggingface" / "hub";
  return fs::path(environment("HOME")) / ".cache" / "huggingface" / "hub";
}

bool looks_like_hub_id(std::string_view name) {
  const size_t slash = name.find('/');
  if (slash == std::string_view::npos) return is_hub_name_part(name);
  return is_hub_name_part(name.substr(0, slash)) && is_hub_name_part(name.substr(slash + 1));
}

std::optional<HubSnapshot> find_in_hub_cache(const std::string& hub_id, const std::string& revision,
                                             const fs::path& cache, HubRepository repository) {
  if (!looks_like_hub_id(hub_id) || !is_safe_revision(revision)) return std::nullopt;
  std::string folder_name =
      (repository == HubRepository::Model ? "models--" : "datasets--") + hub_id;
  if (const size_t slash = folder_name.find('/'); slash != std::string::npos)
    folder_name.replace(slash, 1, "--");
  const fs::path repo_folder = cache / folder_name;
  std::string commit = revision;
  const fs::path ref = repo_folder / "refs" / revision;
  std::error_code ignored;
  if (fs::is_regular_file(ref, ignored)) commit = trimmed(read_file(ref, 1024));
  if (!is_hub_name_part(commit)) return std::nullopt;
  const fs::path snapshot = repo_folder / "snapshots" / commit;
  if (!fs::is_directory(snapshot, ignored)) return std::nullopt;
  return HubSnapshot{snapshot, repo_folder, commit};
}

std::string download_command(const std::string& hub_id, const std::string& revision) {
  constexpr std::string_view kDataSets = "datasets/";
  const std::string folder =
      hub_id.starts_with(kDataSets) ? hub_id.substr(kDataSets.size()) : hub_id;
  std::string command =
      fmt::format("git lfs install && git clone https://huggingface.co/{} {}", hub_id, folder);
  if (revision != "main") command += fmt::format(" && git -C {} checkout {}", folder, revision);
  return command;
}

}  // namespace convoy::io
