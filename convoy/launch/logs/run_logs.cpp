// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/logs/run_logs.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "convoy/core/base/error.h"

namespace convoy::launch {
namespace fs = std::filesystem;
namespace {

fs::path new_folder(const fs::path& parent, const std::string& begin) {
  std::string name = (parent / (begin + "XXXXXX")).string();
  if (::mkdtemp(name.data()) == nullptr)
    throw IoError(fmt::format("no log folder could be made here: {}", std::strerror(errno)),
                  {.file = parent.string(), .hint = "choose another --log-dir"});
  return name;
}

fs::path folder_for_logs(const fs::path& log_dir) {
  std::error_code error;
  if (log_dir.empty()) {
    fs::path temporary = fs::temp_directory_path(error);
    return new_folder(error ? fs::path("/tmp") : temporary, "torchelastic_");
  }
  fs::create_directories(log_dir, error);
  // create_directories reports an error for a link to an existing folder.
  if (std::error_code ignored; !fs::is_directory(log_dir, ignored))
    throw IoError(fmt::format("the log folder could not be made: {}",
                              error ? error.message() : std::strerror(ENOTDIR)),
                  {.file = log_dir.string(), .hint = "choose another --log-dir"});
  return log_dir;
}

// Makes a run id, which may be any text, a component of a path.
std::string as_name(std::string_view run_id) {
  constexpr size_t kLongestName = 200;
  std::string name(run_id.substr(0, kLongestName));
  for (char& letter : name)
    if (letter == '/' || letter == '\0') letter = '_';
  return name;
}

}  // namespace

fs::path make_run_logs(const fs::path& log_dir, std::string_view run_id) {
  return new_folder(folder_for_logs(log_dir), as_name(run_id) + "_");
}

}  // namespace convoy::launch
