// SPDX-License-Identifier: Apache-2.0
//
// The processing of one row of a data set as a pure function: it takes the row and its texts so
// far, and returns the texts that the row needs next, or the finished row. No other progress is
// kept, so any worker can continue a row from its kept texts. A kept text also decides the steps
// that follow it.
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
  std::string unreadable = {};  // reason why the row could not be read: then `value` is its text
};

// One text that a row needs. `key` identifies the text within the row and the configuration, as in
// "generate/0" or "evaluate/0/1".
struct Step {
  std::string key;
  TextRequest request;  // the submitter sets `number`
};

// A text that a row has. An Error is kept if it is permanent, or if the text failed in all of its
// tries.
struct KeptStep {
  std::string key;
  TextResult result;
  int tries = 1;
};

struct FinishedRow {
  // One of "ok", "truncated", "bad_input", "engine_error".
  std::string state = "ok";
  nlohmann::ordered_json value = {};  // everything about the row that outputs and reports need
};

struct NextSteps {
  std::vector<Step> steps = {};  // all steps that can be requested now and are not kept yet
  std::optional<FinishedRow> finished = {};  // if set, there are no steps
};

class RowProgram {
 public:
  virtual ~RowProgram() = default;
  // Thread-safe. The result depends only on the arguments and the configuration. `kept` may have
  // any order. A step that was requested and is not in `kept` is requested again. A bad row does
  // not throw: it has a state of its own.
  virtual NextSteps next(const InputRow& row, std::span<const KeptStep> kept) const = 0;
  // The expected time of the row, in any unit; 0 = unknown. The longest rows are processed first.
  virtual int64_t expected_cost(const InputRow& row) const = 0;
};

}  // namespace convoy::process
