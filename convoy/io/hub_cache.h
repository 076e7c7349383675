// SPDX-License-Identifier: Apache-2.0
//
// Where a Hugging Face hub id lies in the local hub cache. Nothing is ever fetched.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace convoy::io {

// HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME/hub, XDG_CACHE_HOME/huggingface/hub,
// ~/.cache/huggingface/hub.
std::filesystem::path hub_cache_folder();

struct HubSnapshot {
  std::filesystem::path folder;  // snapshots/<commit>
  std::filesystem::path
      repo_folder;  // models--org--name or datasets--org--name, the root that links of the snapshot may not leave
  std::string commit;
};

bool looks_like_hub_id(
    std::string_view name);  // "org/name" or "name", letters, digits, '-', '_', '.'

enum class HubRepository { Model, Dataset };

// `revision`: a branch or tag (looked up in refs/) or a commit. Empty when the cache has no such
// snapshot.
std::optional<HubSnapshot> find_in_hub_cache(const std::string& hub_id, const std::string& revision,
                                             const std::filesystem::path& cache,
                                             HubRepository repository = HubRepository::Model);

// What a person types to have a repository of the hub in a folder of the same name, where it is then found: git with
// git-lfs. `hub_id`: "org/name", of a data set "datasets/org/name", whose folder is then "org/name".
std::string download_command(const std::string& hub_id, const std::string& revision = "main");

}  // namespace convoy::io
