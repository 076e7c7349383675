// SPDX-License-Identifier: Apache-2.0
//
// The prompts of `convoy generate`: typed, the lines of a .txt file, or the rows of a file.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>

#include "convoy/core/base/log.h"
#include "convoy/core/settings/command_flags.h"
#include "convoy/data/datasets/encoding/encoded_rows.h"

namespace convoy::data {

// Makes prompts of samples, as --chat requires.
class PromptReader {
 public:
  // Receives a prompt and the row of the file that it is from.
  using Take = std::function<void(EncodedRow prompt, int64_t source_index)>;

  // `has_template`: chats are possible. `flags` must outlive it. Throws ConfigError.
  PromptReader(const settings::GenerateFlags& flags, bool has_template, EncodedRows::Encode encode,
               const Log& log);

  // Variables of --template-kwargs.
  const nlohmann::ordered_json& variables() const { return variables_; }
  // All prompts, in order. Throws DataError.
  void read(const Take& take) const;

 private:
  bool has_lines() const;
  EncodedRow encode(const Sample& sample) const;
  void read_typed(const Take& take) const;
  void read_rows(const Take& take) const;
  void read_lines(const Take& take) const;

  const settings::GenerateFlags& flags_;
  Log log_;
  nlohmann::ordered_json variables_;
  EncodedRows::Encode encode_;
  // A row that is no conversation becomes a user turn.
  bool chats_ = false;
};

}  // namespace convoy::data
