// SPDX-License-Identifier: Apache-2.0
//
// Finds the project's source folder, for tests that read golden files and examples.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace convoy::testing {

// Returns $CONVOY_SOURCE_DIR, which ctest sets, or the working directory.
inline std::filesystem::path source_folder() {
  const char* const folder = std::getenv("CONVOY_SOURCE_DIR");
  return folder == nullptr ? std::filesystem::path(".") : std::filesystem::path(folder);
}

// Returns the folder of a tiny model of one family, with the values that transformers computes with
// it.
inline std::filesystem::path golden_model(const std::string& name) {
  return source_folder() / "tests/golden/models" / name;
}

}  // namespace convoy::testing
