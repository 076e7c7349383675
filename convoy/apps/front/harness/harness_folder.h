// SPDX-License-Identifier: Apache-2.0
//
// The folder of a measurement's logs and results. An error names only files that it leaves behind.
#pragma once

#include <filesystem>
#include <string>

namespace convoy::apps {

struct HarnessFolder {
  std::filesystem::path path;
  bool stays = true;  // false: it is removed when the measurement ends

  // The file at fault of an error; empty when it is removed.
  std::string shown(const std::filesystem::path& file) const;
  // The log `name` of this folder, or the way to keep it, for the hint of an error.
  std::string log(const std::string& name) const;
};

}  // namespace convoy::apps
