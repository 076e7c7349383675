// SPDX-License-Identifier: Apache-2.0
//
// Files for the tests of this layer: a temporary folder, and the golden folder.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace convoy::data {

class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "convoy-data-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, std::string_view bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

// Removes the {% generation %} tags from the source of a chat template.
inline std::string untagged(std::string source) {
  for (size_t open = source.find("{%"); open != std::string::npos; open = source.find("{%", open)) {
    const size_t close = source.find("%}", open) + 2;
    const std::string tag = source.substr(open, close - open);
    if (tag.find("generation ") != std::string::npos && tag.find("add_") == std::string::npos)
      source.erase(open, close - open);
    else
      open = close;
  }
  return source;
}

inline std::filesystem::path golden_data() {
  const char* root = std::getenv("CONVOY_SOURCE_DIR");
  return std::filesystem::path(root == nullptr ? "." : root) / "tests" / "golden" / "data";
}

}  // namespace convoy::data
