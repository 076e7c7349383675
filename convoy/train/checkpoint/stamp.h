// SPDX-License-Identifier: Apache-2.0
//
// The fields that must not change between a checkpoint and the run that continues it. Plain data,
// no LibTorch.
#pragma once

#include <string>
#include <vector>

#include "convoy/core/io/json_text.h"

namespace convoy::checkpoint {

struct StampField {
  std::string name;  // "dtype", "lora.r", "data_hash"
  std::string value;
  bool informational = false;  // a change is applied and reported, never refused (learning_rate)
  // True: the saved state cannot be read with another value of the field, even if the user forces
  // it. Not saved in files.
  bool decides_state = false;

  bool operator==(const StampField& other) const {
    return name == other.name && value == other.value && informational == other.informational;
  }
};

// Fields in the order they were set.
class Stamp {
 public:
  void set(const std::string& name, const std::string& value);  // replaces a field of the same name
  void set(const std::string& name, int64_t value);
  void set_informational(const std::string& name, const std::string& value);
  void set_of_state(const std::string& name, const std::string& value);  // decides_state

  const StampField* find(const std::string& name) const;
  const std::vector<StampField>& fields() const { return fields_; }

  io::Json to_json() const;
  static Stamp from_json(const io::Json& json, const std::string& place);  // throws DataError
  bool operator==(const Stamp&) const = default;

 private:
  void put(StampField field);
  std::vector<StampField> fields_;
};

struct StampDifference {
  std::string field;
  std::string saved;  // "(absent)" where only one side has the field
  std::string current;
  bool informational = false;
  bool decides_state = false;

  std::string sentence() const;
};

std::vector<StampDifference> compare(const Stamp& saved, const Stamp& current);

// Returns sentences for the log: informational and forced differences. Throws ConfigError that
// lists every other difference with both values and, if there is one, the flag that forces it.
// `forced`: field names, or "all".
std::vector<std::string> require_same_stamp(const Stamp& saved, const Stamp& current,
                                            const std::vector<std::string>& forced,
                                            const std::string& checkpoint);

}  // namespace convoy::checkpoint
