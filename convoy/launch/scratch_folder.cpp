// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/scratch_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "convoy/base/error.h"

namespace convoy::launch {

ScratchFolder::ScratchFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "convoy-XXXXXX").string();
  CONVOY_CHECK(mkdtemp(name.data()) != nullptr, IoError, "no folder could be made at {}: {}", name,
               std::strerror(errno));
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path ScratchFolder::error_file(int attempt, int local_rank) const {
  const std::filesystem::path folder =
      path_ / fmt::format("attempt_{}", attempt) / std::to_string(local_rank);
  std::filesystem::create_directories(folder);
  return folder / "error.json";
}

}  // namespace convoy::launch
