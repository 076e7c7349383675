// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/harness/harness_folder.h"

#include <fmt/format.h>

namespace convoy::apps {

std::string HarnessFolder::shown(const std::filesystem::path& file) const {
  return stays ? file.string() : "";
}

std::string HarnessFolder::log(const std::string& name) const {
  return stays ? (path / name).string() : fmt::format("{}, which --output FOLDER keeps", name);
}

}  // namespace convoy::apps
