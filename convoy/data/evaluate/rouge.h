// SPDX-License-Identifier: Apache-2.0
//
// ROUGE as google-research's rouge_score 0.1.2 computes it, and rougeL over the words of all
// scripts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace convoy::evaluate {

// How to split a text into words. Plain: runs of a-z and 0-9 after lower-casing; texts in other
// scripts have no words. Stemmed: as Plain, but words longer than three letters are stemmed.
// Unicode: runs of letters, numbers and marks of any script after case folding; in a script without
// spaces between words each character is a word. Characters are not normalised.
enum class RougeWords { Plain, Stemmed, Unicode };

std::vector<std::string> rouge_words(std::string_view text, RougeWords words);

// Numbers words: equal words get equal numbers. One thread.
class WordNumbers {
 public:
  std::vector<int32_t> of(const std::vector<std::string>& words);

 private:
  std::unordered_map<std::string, int32_t> numbers_;
};

// The F measure, from 0 to 1; 0 when either side has no words.
double rouge_n(const std::vector<int32_t>& reference, const std::vector<int32_t>& prediction,
               size_t n);
double rouge_l(const std::vector<int32_t>& reference, const std::vector<int32_t>& prediction);
// ROUGE-Lsum, over lines; lines without letters are ignored.
double rouge_l_sum(const std::vector<std::vector<int32_t>>& reference,
                   const std::vector<std::vector<int32_t>>& prediction);

// The lines of a text that are not empty.
std::vector<std::string_view> lines_of(std::string_view text);

}  // namespace convoy::evaluate
