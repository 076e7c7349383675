// SPDX-License-Identifier: Apache-2.0
//
// Resolves configurations of a temporary folder.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "convoy/core/config/example_settings_test.h"
#include "convoy/core/config/resolve.h"

namespace convoy::config {

class Resolve : public ::testing::Test {
 protected:
  // Returns the error of reading `text` as run.yaml, without the folder's path, or "" if it is
  // accepted.
  std::string error_of(const std::string& text, const Sources& more = {}) {
    Sources sources = more;
    sources.file = folder_.write("run.yaml", text);
    RootSettings settings;
    try {
      resolve(settings, sources);
      return "";
    } catch (const ConfigError& error) {
      return without_folder(error.sentence());
    }
  }

  std::string override_error(const std::string& text) {
    return error_of("seed: 1\n", {.overrides = {text}});
  }

  std::string without_folder(std::string text) const {
    const std::string folder = folder_.path().string() + "/";
    for (size_t at = text.find(folder); at != std::string::npos; at = text.find(folder))
      text.erase(at, folder.size());
    return text;
  }

  Resolved read(RootSettings& settings, const std::string& text, Sources sources = {}) {
    sources.file = folder_.write("run.yaml", text);
    return resolve(settings, sources);
  }

  TemporaryFolder folder_;
};

}  // namespace convoy::config
