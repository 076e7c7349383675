// SPDX-License-Identifier: Apache-2.0
//
// Finds texts of a benchmark in rows that a model is to learn from: a model that has learnt a
// benchmark's rows is measured too well. The rule is the one of Lambert et al. 2024 (Tulu 3,
// arXiv:2411.15124, section 3.2): runs of 8 words, and half of a text's runs in one row.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace convoy::data {

struct OverlapConfig {
  int64_t ngram_words = 8;
  double share = 0.5;  // least share of a text's runs of words that a row must have, above 0 to 1
};

// The text of the benchmark that a row has most of.
struct Overlap {
  int64_t benchmark_row = 0;  // index from 0
  double share = 0;
  std::string text = {};  // the beginning of that text
};

// The texts of a benchmark's rows, by their runs of words. A text is any string within a row. Words
// are letters and digits; the case of ASCII letters and punctuation do not count, and a Chinese or
// Japanese character is a word. Left out are texts with fewer words than a run has, texts that
// several rows have (such as instructions), and runs that more than 10 rows have.
class BenchmarkIndex {
 public:
  explicit BenchmarkIndex(OverlapConfig config) : config_(config) {}

  void add(const nlohmann::ordered_json& row);
  void finish();  // call it once, after all rows

  int64_t rows() const { return rows_; }
  int64_t rows_without_text() const;  // rows of which no text is compared
  // Thread-safe after finish(). Empty: the row has too little of every text.
  std::optional<Overlap> find(const nlohmann::ordered_json& row) const;

 private:
  struct Text {
    int64_t row = 0;
    int64_t runs = 0;  // compared runs of words, each counted once
    std::string beginning;
    std::vector<uint64_t> hashes = {};  // emptied by finish()
  };

  OverlapConfig config_;
  int64_t rows_ = 0;
  std::vector<Text> texts_;
  std::unordered_map<uint64_t, std::vector<uint32_t>> texts_of_run_;
};

}  // namespace convoy::data
