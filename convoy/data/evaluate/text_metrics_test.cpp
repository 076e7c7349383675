// SPDX-License-Identifier: Apache-2.0
//
// Compares with rouge_score, NLTK, sacrebleu and Hugging Face's evaluate
// (tests/golden/evaluate/make_pairs.py).
#include "convoy/data/evaluate/text_metrics.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/data/evaluate/common_subsequence.h"
#include "convoy/data/evaluate/porter_stemmer.h"
#include "convoy/data/evaluate/rouge.h"
#include "convoy/data/evaluate/sample_files.h"
#include "convoy/data/evaluate/sari.h"
#include "convoy/data/evaluate/unicode_text.h"

namespace convoy::evaluate {
namespace {

using nlohmann::json;

std::filesystem::path golden(const char* name) {
  return std::filesystem::path(std::getenv("CONVOY_SOURCE_DIR")) / "tests/golden/evaluate" / name;
}

double score_of(const char* metric, const ScoredAnswer& sample) {
  return TextMetrics({metric}).score(sample).values.at(0);
}

TEST(TextMetrics, AreThoseOfTheReferenceImplementations) {
  const std::vector<ScoredAnswer> samples = read_samples(golden("pairs.jsonl"));
  ASSERT_EQ(samples.size(), 2000U);
  const TextMetrics metrics;
  const std::string text = read_file(golden("pairs.jsonl"));
  size_t begin = 0;
  std::map<std::string, int> compared;
  for (const ScoredAnswer& sample : samples) {
    const size_t end = text.find('\n', begin);
    const json wanted = json::parse(text.substr(begin, end - begin)).at("scores");
    begin = end + 1;
    const RowScores scores = metrics.score(sample);
    for (size_t metric = 0; metric < metrics.names().size(); ++metric) {
      const std::string& name = metrics.names()[metric];
      if (!wanted.contains(name)) continue;
      // Convoy gives an empty prediction the SARI 0, by choice; the reference gives another value.
      if (name == "sari" && scores.values[metric] == 0 &&
          sample.pred.find_first_not_of(" \t\r\n") == std::string::npos) {
        ++compared[name];
        continue;
      }
      ++compared[name];
      const double value = wanted[name];
      EXPECT_NEAR(scores.values[metric], value, 1e-12 * std::max(1.0, value))
          << name << " of " << sample_row(sample).dump();
    }
  }
  EXPECT_EQ(compared.size(), 13U);
  for (const auto& [name, rows] : compared) EXPECT_EQ(rows, 2000) << name;
}

TEST(TextMetrics, VectorsOfTheFormatsDocument) {
  const ScoredAnswer fox{.pred = "the fast brown fox jumped over a lazy dog.",
                         .refs = {"The quick brown fox jumps over the lazy dog"}};
  EXPECT_NEAR(score_of("rougeL", fox), 2.0 / 3, 1e-12);
  EXPECT_NEAR(score_of("rougeL_stem", fox), 7.0 / 9, 1e-12);
  EXPECT_NEAR(score_of("rougeL", {.pred = "its 3 14 ok", .refs = {"It's 3.14, OK?"}}), 2.0 / 3,
              1e-12);
  EXPECT_NEAR(score_of("sari", {.input = "About 95 species are currently accepted .",
                                .pred = "About 95 you now get in .",
                                .refs = {"About 95 species are currently known .",
                                         "About 95 species are now accepted .",
                                         "95 species are now accepted ."}}),
              26.953601953601954, 1e-12);
}

TEST(TextMetrics, EmptyPredictionsCountAsZero) {
  const ScoredAnswer empty{.input = "two and two \\boxed{4}", .pred = " ", .refs = {"\\boxed{4}"}};
  const TextMetrics all;
  const RowScores scores = all.score(empty);
  for (size_t metric = 0; metric < all.names().size(); ++metric)
    if (all.names()[metric] != "schema_compliance") {  // without a schema there is nothing to check
      EXPECT_EQ(scores.values[metric], 0) << all.names()[metric];
    }
  EXPECT_GT(score_of("sari", {.input = "four", .pred = "", .refs = {""}}), 0);
  const TextMetrics metrics({"rougeL", "rougeL_unicode", "exact_match", "token_f1", "rougeLsum"});
  MetricMeans means(metrics);
  means.add(metrics.score({.pred = "", .refs = {"four"}}));
  means.add(metrics.score({.pred = "four", .refs = {"four"}}));
  EXPECT_EQ(means.json(), json({{"count", 2},
                                {"rougeL", 0.5},
                                {"rougeL_unicode", 0.5},
                                {"exact_match", 0.5},
                                {"token_f1", 0.5},
                                {"rougeLsum", 0.5}}));
}

TEST(TextMetrics, WhatHasNothingToMeasureIsNull) {
  const TextMetrics metrics({"sari", "numeric_match", "answer_match", "schema_compliance"});
  MetricMeans means(metrics);
  EXPECT_TRUE(means.json()["numeric_match"].is_null());
  means.add(metrics.score({.pred = "4", .refs = {"4"}}));
  for (const std::string& name : metrics.names()) EXPECT_TRUE(means.json()[name].is_null()) << name;
  MetricMeans answers(metrics);
  answers.add(metrics.score({.input = "2+2", .pred = "so \\boxed{1/2}", .refs = {"... #### 0.5"}}));
  EXPECT_EQ(answers.json()["answer_match"], 1.0);
  EXPECT_EQ(answers.json()["numeric_match"], 0.0);
  EXPECT_TRUE(answers.json()["sari"].is_number());
}

TEST(TextMetrics, RefusesNamesThatAreNone) {
  try {
    TextMetrics({"rougeL", "rougel"});
    ADD_FAILURE();
  } catch (const ConfigError& error) {
    EXPECT_NE(error.sentence().find("did you mean `rougeL`"), std::string::npos)
        << error.sentence();
  }
}

TEST(PorterStem, IsNltks) {
  const json stems = json::parse(read_file(golden("stems.json")));
  ASSERT_GT(stems.size(), 500U);
  for (const auto& [word, stem] : stems.items()) EXPECT_EQ(porter_stem(word), stem) << word;
  EXPECT_EQ(porter_stem("happily"), "happili");
  EXPECT_EQ(porter_stem("skies"), "sky");
}

TEST(UnicodeText, IsPythons) {
  for (const json& one : json::parse(read_file(golden("text.json")))) {
    const std::string text = one["text"];
    EXPECT_EQ(lowered(text), one["lower"]) << one["text"];
    EXPECT_EQ(case_folded(text), one["casefold"]) << one["text"];
    EXPECT_EQ(trimmed(text), one["strip"].get<std::string>()) << one["text"];
    std::vector<std::string> words;
    for (const std::string_view word : split_words(text)) words.emplace_back(word);
    EXPECT_EQ(json(words), one["split"]) << one["text"];
    std::string joined;
    for (const std::string& word : words_of_13a(text)) joined += (joined.empty() ? "" : " ") + word;
    EXPECT_EQ(joined, one["words_13a"].get<std::string>()) << one["text"];
  }
}

TEST(UnicodeText, BytesThatAreNoUtf8AreOneCharacterEach) {
  const std::string broken = "A\xff\xc3(\xe4\xb8\xf0\x9f\x98Z";
  EXPECT_EQ(lowered(broken), "a\xff\xc3(\xe4\xb8\xf0\x9f\x98z");
  EXPECT_EQ(rouge_words(broken, RougeWords::Unicode), (std::vector<std::string>{"a", "z"}));
}

// The reference: fills the whole table of the longest common subsequence and traces it back, as
// rouge_score does.
std::vector<size_t> subsequence_by_table(const std::vector<int32_t>& first,
                                         const std::vector<int32_t>& second) {
  std::vector<std::vector<int>> table(first.size() + 1, std::vector<int>(second.size() + 1));
  for (size_t i = 1; i <= first.size(); ++i)
    for (size_t j = 1; j <= second.size(); ++j)
      table[i][j] = first[i - 1] == second[j - 1] ? table[i - 1][j - 1] + 1
                                                  : std::max(table[i - 1][j], table[i][j - 1]);
  std::vector<size_t> places;
  for (size_t i = first.size(), j = second.size(); i > 0 && j > 0;) {
    if (first[i - 1] == second[j - 1]) {
      places.insert(places.begin(), i - 1);
      --i;
      --j;
    } else if (table[i][j - 1] > table[i - 1][j]) {
      --j;
    } else {
      --i;
    }
  }
  return places;
}

TEST(CommonSubsequence, IsTheOneThatTheTableFinds) {
  std::mt19937 draw(7);
  for (int round = 0; round < 400; ++round) {
    const auto some = [&] {
      std::vector<int32_t> tokens(draw() % 200);
      const auto kinds = 1 + draw() % 20;
      for (int32_t& token : tokens) token = static_cast<int32_t>(draw() % kinds);
      return tokens;
    };
    const std::vector<int32_t> first = some();
    const std::vector<int32_t> second = some();
    const std::vector<size_t> wanted = subsequence_by_table(first, second);
    EXPECT_EQ(common_subsequence(first, second), wanted) << round;
    EXPECT_EQ(common_subsequence_length(first, second), wanted.size()) << round;
    EXPECT_EQ(common_subsequence_length(second, first), wanted.size()) << round;
  }
}

TEST(CommonSubsequence, LongTextsAreNoMatterOfMemory) {
  // The second text is the first, 50,000 words in the order 0, 1, 2, ..., without every fifth word:
  // 40,000 words are common.
  std::vector<int32_t> all(50'000);
  std::vector<int32_t> some;
  for (int32_t word = 0; word < 50'000; ++word) {
    all[static_cast<size_t>(word)] = word % 997;
    if (word % 5 != 0) some.push_back(word % 997);
  }
  EXPECT_EQ(common_subsequence_length(all, some), some.size());
  EXPECT_EQ(common_subsequence(all, some).size(), some.size());
}

}  // namespace
}  // namespace convoy::evaluate
