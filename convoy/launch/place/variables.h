// SPDX-License-Identifier: Apache-2.0
//
// The variables of other launchers, read by name from an environment map. Every name is in one
// table, which the documentation is tested against; reading another one is our own bug.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::launch {

// A number and the variable that holds it. Negative = unknown.
struct Fact {
  int number = -1;
  std::string variable = {};

  bool known() const { return number >= 0; }
  std::string text() const;  // "SLURM_PROCID=3"
};

class Variables {
 public:
  explicit Variables(const std::map<std::string, std::string>& environment)
      : environment_(environment) {}

  // Set and not empty: job scripts export variables that they never filled.
  bool has(std::string_view name) const { return !text(name).empty(); }
  std::string text(std::string_view name) const;  // empty = unset
  std::string pair(std::string_view name) const;  // "NAME=value"; empty = unset

  // An unset variable gives an unknown Fact. Throws ConfigError when the value is not a number >=
  // 0.
  Fact number(std::string_view name) const;
  // The first of `names` that is set. Throws ConfigError also when two of them are set and differ.
  Fact first_number(const std::vector<std::string_view>& names) const;

  static const std::vector<std::string_view>& all();

 private:
  const std::map<std::string, std::string>& environment_;
};

}  // namespace convoy::launch
