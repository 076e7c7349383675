// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/model_files/output_place.h"

#include "convoy/core/base/error.h"

namespace convoy::recipes {

void require_new_file(const std::filesystem::path& file) {
  if (std::filesystem::exists(file))
    throw ConfigError("the output exists already",
                      {.file = file.string(), .hint = "name a new one"});
}

void require_new_folder(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder)) return require_new_file(folder);
  if (!std::filesystem::is_empty(folder))
    throw ConfigError("the output folder is not empty",
                      {.file = folder.string(), .hint = "name a new one"});
}

}  // namespace convoy::recipes
