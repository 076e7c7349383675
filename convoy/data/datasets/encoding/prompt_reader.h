// SPDX-License-Identifier: Apache-2.0
//
// The prompts of `convoy generate`: typed, the lines of a .txt file, or the rows of a file.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>

#include "convoy/core/base/log.h"
#include "convoy/core/settings/command_flags.h"
#include "convoy/data/datasets/encoding/encoded_rows.h"
#include "convoy/data/datasets/encoding/row_warnings.h"

namespace convoy::data {

// Makes prompts from the rows or lines that the flags name.
class PromptReader {
 public:
  // Receives a prompt and the number of its row in the file.
  using Take = std::function<void(EncodedRow prompt, int64_t source_index)>;

  // `has_template`: true when chats are possible. `flags` must outlive the reader. Throws
  // ConfigError.
  PromptReader(const settings::GenerateFlags& flags, bool has_template, EncodedRows::Encode encode,
               const Log& log);

  // The variables of --template-kwargs.
  const nlohmann::ordered_json& variables() const { return variables_; }
  // Passes all prompts to `take`, in order. Throws DataError.
  void read(const Take& take) const;

 private:
  bool has_lines() const;
  EncodedRow encode(const Sample& sample) const;
  void read_typed(const Take& take) const;
  void read_rows(const Take& take) const;
  void read_lines(const Take& take) const;
  // `plain`: the rows of plain text among all `rows`; `own_system`: those with a system turn of
  // their own. Throws ConfigError when no row reads a given flag, warns when some do not.
  void say_flags_without_effect(const RowTally& plain, const RowTally& own_system,
                                int64_t rows) const;
  std::string flags_for_chats() const;

  const settings::GenerateFlags& flags_;
  Log log_;
  nlohmann::ordered_json variables_;
  EncodedRows::Encode encode_;
  // True: a row that is no conversation becomes a user turn.
  bool chats_ = false;
};

}  // namespace convoy::data
