// SPDX-License-Identifier: Apache-2.0
//
// The errors of one configuration, gathered so that a person mends them in one go.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "convoy/core/base/error.h"

namespace convoy::config {

class ErrorList {
 public:
  // The same sentence is kept once; of very many errors the rest is only counted.
  void add(const ConfigError& error);
  bool empty() const { return count_ == 0; }
  int64_t count() const { return count_; }
  bool full() const;  // further ones are only counted, so their words are not worth much work

  // Nothing when empty; a single error as it is; several as one, each on a line of its own, and
  // their number. By file in the order of `files`, within a file by line; what has no file comes
  // last.
  void throw_if_any(const std::vector<std::string>& files = {}) const;

 private:
  std::vector<ConfigError> errors_;
  std::set<std::string> sentences_;
  int64_t count_ = 0;
};

}  // namespace convoy::config
