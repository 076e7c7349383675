// SPDX-License-Identifier: Apache-2.0
//
// Which key a person may have meant by one that is none: keys of other sections, and of other
// programs' habits.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/config/field_list.h"

namespace convoy::config {

class MeantKeys {
 public:
  explicit MeantKeys(const Section& list);

  // The path of the key that has all words of `spelling`, else of the first whose whole name is its
  // last part; "" where none has, or the name says too little.
  std::string in_full(std::string_view spelling) const;
  // The path of the key that has the name of `spelling` ("train_batch_size", "lr"), or all its
  // words ("eval.every" is train.eval_steps, "lora.dora" is tuning.lora.use_dora), in its section
  // or in another; "" where none has.
  std::string find(std::string_view spelling) const;
  // The path of the key anywhere that `spelling` may be a misspelling of, or "".
  std::string nearest(std::string_view spelling) const;

 private:
  struct Key {
    std::string path;
    std::vector<std::string> names;                // of the field: its own, then its aliases
    std::vector<std::vector<std::string>> leaves;  // the words of each
    std::vector<std::string> sections;             // the words before them
  };

  std::string found_by(std::string_view spelling) const;
  std::string named(std::string_view spelling) const;
  std::string with_words_of(std::string_view spelling) const;

  std::vector<Key> keys_;
};

}  // namespace convoy::config
