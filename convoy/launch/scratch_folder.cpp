// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/scratch_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "convoy/base/error.h"

namespace convoy::launch {

ScratchFolder::ScratchFolder() {
  std::error_code error;
  const std::filesystem::path wanted = std::filesystem::temp_directory_path(error);
  for (const std::filesystem::path& folder : {wanted, std::filesystem::path("/tmp")}) {
    if (folder.empty()) continue;
    std::string name = (folder / "convoy-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) continue;
    path_ = name;
    return;
  }
  throw IoError(
      fmt::format("no folder for temporary files could be made: {}", std::strerror(errno)),
      {.hint = "set TMPDIR to a folder on a disk that is not full and may be written to"});
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
