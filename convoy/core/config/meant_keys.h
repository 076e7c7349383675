// SPDX-License-Identifier: Apache-2.0
//
// Guesses which key a person meant by an unknown one: keys of other sections, and other programs'
// names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/config/field_list.h"

namespace convoy::config {

class MeantKeys {
 public:
  explicit MeantKeys(const Section& list);

  // Returns the path of the key that has all words of `spelling`, else of the first key whose name
  // is the last part of `spelling`. Returns "" when there is none, or when the name is too common.
  std::string in_full(std::string_view spelling) const;
  // Returns the path of the key with the name of `spelling` ("train_batch_size", "lr") or with all
  // its words ("eval.every" is train.eval_steps, "lora.dora" is tuning.lora.use_dora), in its
  // section or in another. Returns "" when there is none, or when the name is too common.
  std::string find(std::string_view spelling) const;
  // Returns the path of the key, in any section, that is nearest to the misspelt `spelling`, or "".
  std::string nearest(std::string_view spelling) const;

 private:
  struct Key {
    std::string path;
    std::vector<std::string> names;                // names of the field: its own, then its aliases
    std::vector<std::vector<std::string>> leaves;  // the words of each name
    std::vector<std::string> sections;             // the words of the sections before the name
  };

  std::string found_by(std::string_view spelling) const;
  std::string named(std::string_view spelling) const;
  std::string with_words_of(std::string_view spelling) const;

  std::vector<Key> keys_;
};

}  // namespace convoy::config
