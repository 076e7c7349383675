// SPDX-License-Identifier: Apache-2.0
//
// The results of a program in the lines of its stdout. For each key the last line that holds it
// counts, whether it can be read or not. So a diverged run never has the value of an older line.
// One thread.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/farm/sweep/command/program_run.h"

namespace convoy::sweep {

// A key and its value in one line.
struct KeyInLine {
  bool held = false;
  // The object that has the key; nullopt = the line cannot be read.
  std::optional<nlohmann::json> object = {};
  bool not_finite = false;      // the line cannot be read, and its value of the key is not finite
  bool without_object = false;  // such as "loss: 0.4"; counts only after a line that has an object
};

// A line is one JSON object, or text with objects in it; the last object with the key counts.
// Colour codes are skipped. Three other kinds of lines hold the key and cannot be read: a line that
// names the key as an object does, in the notation of any language; an object that has a number for
// the key deeper inside, {"metrics": {"loss": 0.4}}; and text that gives the key a value, "final
// loss: nan". A longer name, such as val_loss or "val loss", is not the key.
KeyInLine key_in_line(const OutputLine& line, const std::string& key);

class ResultLines {
 public:
  explicit ResultLines(const std::vector<std::string>& keys) {
    for (const std::string& key : keys) last_[key] = {};
  }

  void take(const OutputLine& line);
  // The value of `key`, which is one of the constructor's keys. NaN if the program printed a value
  // that is not finite. Throws TaskFailure "output" if the last line with the key cannot be read or
  // if no line has the key, and the errors of number_of().
  double value(const std::string& key) const;

 private:
  struct Last {
    std::string text = {};  // beginning of the line; empty = no line has the key
    bool too_long = false;
    bool not_finite = false;
    std::optional<nlohmann::json> value = {};  // nullopt: the value cannot be read
  };
  std::map<std::string, Last> last_;
  std::string last_line_;  // beginning of the last line that is not blank
};

}  // namespace convoy::sweep
