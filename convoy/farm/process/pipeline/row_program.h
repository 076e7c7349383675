// SPDX-License-Identifier: Apache-2.0
//
// The processing of one row of a data set as a pure function: from the row and its texts so far to
// the texts that it needs next, or to its end. No other progress is kept, so any worker can
// continue a row from its kept texts, and keeping a text also queues the steps that follow from it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "convoy/farm/process/text_engine.h"

namespace convoy::process {

struct InputRow {
  int64_t index = 0;                  // place among the rows of the output, from 0
  int64_t source_index = 0;           // place in the whole data set, from 0
  std::string hash = {};              // SHA-256 of `value` as canonical JSON, hexadecimal
  nlohmann::ordered_json value = {};  // the row as it was read
  std::string unreadable = {};        // why it could not be read: then `value` is its text
};

// One text that a row needs. `key` names it within the row and the configuration: "generate/0",
// "evaluate/0/1".
struct Step {
  std::string key;
  TextRequest request;  // `number` is filled in by who submits it
};

// A text that a row has. An Error is kept once it cannot pass, or did not within the tries that a
// text has.
struct KeptStep {
  std::string key;
  TextResult result;
  int tries = 1;
};

struct FinishedRow {
  // "ok", "truncated", "bad_input", "engine_error".
  std::string state = "ok";
  nlohmann::ordered_json value = {};  // everything that outputs and reports need of the row
};

struct NextSteps {
  std::vector<Step> steps = {};              // all that can be asked for now and are not kept yet
  std::optional<FinishedRow> finished = {};  // then there are no steps
};

class RowProgram {
 public:
  virtual ~RowProgram() = default;
  // Thread-safe. Depends on nothing but its arguments and the configuration. `kept` in no
  // particular order. A step that was requested and is not in `kept` is requested again. Throws
  // nothing for a bad row: that is a state.
  virtual NextSteps next(const InputRow& row, std::span<const KeptStep> kept) const = 0;
  // Expected time of the row, in any unit: the longest rows go first. 0 = unknown.
  virtual int64_t expected_cost(const InputRow& row) const = 0;
};

}  // namespace convoy::process
