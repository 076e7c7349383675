// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <filesystem>

#include "convoy/apps/front/build_facts.h"
#include "convoy/base/error.h"
#include "convoy/base/files.h"

namespace convoy::apps {
namespace {

// The version in a folder that holds include/ and lib/: build-version of the C++ archive, version.py of the wheel.
std::string version_in(const std::filesystem::path& folder) {
  constexpr int64_t kMaxBytes = 1 << 16;
  std::error_code ignored;
  if (folder.empty()) return {};
  if (std::filesystem::exists(folder / "build-version", ignored)) {
    const std::string text = read_file(folder / "build-version", kMaxBytes);
    return text.substr(0, text.find_first_of("\r\n"));
  }
  if (!std::filesystem::exists(folder / "version.py", ignored)) return {};
  const std::string text = read_file(folder / "version.py", kMaxBytes);
  const size_t begin = text.find('\'', text.find("__version__ ="));
  const size_t end = begin == std::string::npos ? begin : text.find('\'', begin + 1);
  return end == std::string::npos ? "" : text.substr(begin + 1, end - begin - 1);
}

}  // namespace

std::string libtorch_version(const std::string& program_folder) {
  const char* chosen = std::getenv("CONVOY_TORCH");
  const std::filesystem::path beside =
      std::filesystem::path(program_folder) / ".." / ".deps/site/torch";
  for (const std::filesystem::path& folder :
       {std::filesystem::path(chosen == nullptr ? "" : chosen), std::filesystem::path(kTorchFolder),
        beside}) {
    try {
      if (std::string version = version_in(folder); !version.empty()) return version;
    } catch (const Error&) {
      // An unreadable version file is no version.
    }
  }
  return "not found";
}

}  // namespace convoy::apps
