// SPDX-License-Identifier: Apache-2.0
//
// Finds a Hugging Face hub id in the local hub cache. Never fetches; convoy/data/hub does that on
// request.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace convoy::io {

// HF_HOME, else XDG_CACHE_HOME/huggingface, else ~/.cache/huggingface.
std::filesystem::path hub_home_folder();

// HF_HUB_CACHE, else HUGGINGFACE_HUB_CACHE, else the folder `hub` of hub_home_folder().
std::filesystem::path hub_cache_folder();

struct HubSnapshot {
  std::filesystem::path folder;  // snapshots/<commit>
  // The folder models--org--name or datasets--org--name. Links of the snapshot must stay inside it.
  std::filesystem::path repo_folder;
  std::string commit;
};

bool looks_like_hub_id(
    std::string_view name);  // "org/name" or "name", letters, digits, '-', '_', '.'

enum class HubRepository { Model, Dataset };

// "models--org--name" or "datasets--org--name" in the cache.
std::string hub_folder_name(const std::string& hub_id, HubRepository repository);

// True for "main", "v1.0", "refs/pr/1", a commit; false for a name that leads out of refs/ or
// snapshots/.
bool looks_like_hub_revision(std::string_view revision);

// `revision`: a branch or tag (resolved by refs/) or a commit. Empty when the cache has no such
// snapshot.
std::optional<HubSnapshot> find_in_hub_cache(const std::string& hub_id, const std::string& revision,
                                             const std::filesystem::path& cache,
                                             HubRepository repository = HubRepository::Model);

// The command that downloads a repository of the hub into the cache: "convoy models fetch
// org/name".
std::string download_command(const std::string& hub_id, HubRepository repository,
                             const std::string& revision = "main");

}  // namespace convoy::io
