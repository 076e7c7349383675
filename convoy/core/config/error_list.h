// SPDX-License-Identifier: Apache-2.0
//
// Collects the errors of one configuration, so that a person can fix them all at once.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "convoy/core/base/error.h"

namespace convoy::config {

class ErrorList {
 public:
  // Equal sentences are kept once. Beyond a limit, further errors are only counted.
  void add(const ConfigError& error);
  void add(const ErrorList& errors);
  bool empty() const { return count_ == 0; }
  int64_t count() const { return count_; }
  bool full() const;  // further errors are only counted, so costly texts need not be made

  // Does nothing when empty. Throws a single error unchanged, and several as one error with their
  // number and one line each. Order: by file as in `files`, then by line; errors without a file
  // come last.
  void throw_if_any(const std::vector<std::string>& files = {}) const;

 private:
  std::vector<ConfigError> errors_;
  std::set<std::string> sentences_;
  int64_t count_ = 0;
};

}  // namespace convoy::config
