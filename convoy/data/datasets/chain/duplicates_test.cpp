// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/chain/duplicates.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "convoy/core/base/error.h"
#include "convoy/data/datasets/chain/sorted_runs.h"
#include "convoy/data/datasets/files_test.h"

namespace convoy::data {
namespace {

RowPass pass_of(const std::filesystem::path& path) {
  return {.dataset = find_dataset({.name = path.string()})};
}

std::string text_rows(const std::vector<std::string>& texts) {
  std::string bytes;
  for (const std::string& text : texts)
    bytes += nlohmann::ordered_json({{"text", text}}).dump() + "\n";
  return bytes;
}

TEST(ExactDuplicates, WhiteSpaceAndCaseDoNotCount) {
  const ScratchFolder folder;
  const auto path =
      folder.write("rows.jsonl",
                   text_rows({"One  two", "three", " one\ttwo\n", "one two!", "THREE", "One two"}));
  const DuplicateReport found = find_exact_duplicates(pass_of(path), {}, folder.path());
  EXPECT_EQ(found.pass.rows_read, 6);
  EXPECT_EQ(found.clusters, 2);
  std::map<int64_t, int64_t> kept;
  for (const Duplicate& duplicate : found.duplicates) kept[duplicate.row] = duplicate.kept;
  EXPECT_EQ(kept, (std::map<int64_t, int64_t>{{2, 0}, {4, 1}, {5, 0}}));
  const DuplicateReport bytes = find_exact_duplicates(
      pass_of(path), {.column = {}, .schema = {}, .normalise = false}, folder.path());
  EXPECT_TRUE(bytes.duplicates.empty());
}

// The first two rows have the same words in the same order, but different roles say them.
TEST(ExactDuplicates, RolesCount) {
  const ScratchFolder folder;
  const auto path = folder.write(
      "rows.jsonl",
      R"({"messages":[{"role":"user","content":"a b"},{"role":"assistant","content":"c"}]})"
      "\n"
      R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b c"}]})"
      "\n"
      R"({"messages":[{"role":"user","content":"A b"},{"role":"assistant","content":"c"}]})"
      "\n");
  const DuplicateReport found = find_exact_duplicates(pass_of(path), {}, folder.path());
  ASSERT_EQ(found.duplicates.size(), 1u);
  EXPECT_EQ(found.duplicates[0].row, 2);
}

// Returns texts of 60 words, each with copies in which some words are replaced.
std::vector<std::string> texts_with_copies(std::mt19937_64& random) {
  std::vector<std::string> texts;
  const auto word = [&] { return fmt::format("w{}", random() % 5000); };
  for (int text = 0; text < 120; ++text) {
    std::vector<std::string> words;
    for (int at = 0; at < 60; ++at) words.push_back(word());
    for (const int changed : {0, 1, 3, 6}) {
      for (int at = 0; at < changed; ++at) words[random() % words.size()] = word();
      texts.push_back(fmt::format("{}", fmt::join(words, " ")));
    }
  }
  std::shuffle(texts.begin(), texts.end(), random);
  return texts;
}

// Compares with all pairs of texts. At most 1 % of the pairs that reach the threshold may be
// missed, and every duplicate that is found must belong to such a pair.
TEST(NearDuplicates, AreThePairsAtTheThreshold) {
  std::mt19937_64 random(11);
  const std::vector<std::string> texts = texts_with_copies(random);
  const ScratchFolder folder;
  const auto path = folder.write("rows.jsonl", text_rows(texts));
  for (const double threshold : {0.5, 0.8}) {
    const DuplicateReport found =
        find_near_duplicates(pass_of(path), {.column = "text", .schema = {}},
                             {.threshold = threshold, .shingle = 3}, folder.path());
    std::vector<int64_t> root(texts.size());
    for (size_t row = 0; row < root.size(); ++row) root[row] = static_cast<int64_t>(row);
    for (const Duplicate& duplicate : found.duplicates)
      root[static_cast<size_t>(duplicate.row)] = duplicate.kept;
    std::vector<std::vector<uint64_t>> hashes;
    for (const std::string& text : texts) hashes.push_back(shingles(text, ShingleUnit::Words, 3));
    int64_t pairs = 0, missed = 0;
    std::vector<bool> has_twin(texts.size(), false);
    for (size_t left = 0; left < texts.size(); ++left)
      for (size_t right = left + 1; right < texts.size(); ++right) {
        if (jaccard(hashes[left], hashes[right]) < threshold) continue;
        ++pairs;
        missed += root[left] != root[right];
        has_twin[left] = has_twin[right] = true;
      }
    EXPECT_GT(pairs, 100);
    EXPECT_LE(missed * 100, pairs) << "threshold " << threshold;
    for (const Duplicate& duplicate : found.duplicates)
      EXPECT_TRUE(has_twin[static_cast<size_t>(duplicate.row)]) << duplicate.row;
  }
}

TEST(NearDuplicates, BandsFindNearlyAllAtTheThreshold) {
  for (const double threshold : {0.1, 0.5, 0.7, 0.8, 0.95, 1.0}) {
    const LshBands lsh = lsh_bands(threshold);
    EXPECT_LE(lsh.bands * lsh.rows, 128);
    EXPECT_GE(1 - std::pow(1 - std::pow(threshold, lsh.rows), lsh.bands), 0.999) << threshold;
  }
}

TEST(Shingles, AreRunsOfWordsOrCharacters) {
  EXPECT_EQ(shingles("a b c d", ShingleUnit::Words, 2).size(), 3u);
  EXPECT_EQ(shingles("a b a b", ShingleUnit::Words, 2).size(), 2u);
  EXPECT_EQ(shingles("a", ShingleUnit::Words, 5).size(), 1u);
  EXPECT_TRUE(shingles("  ", ShingleUnit::Words, 5).empty());
  EXPECT_EQ(shingles("äöü", ShingleUnit::Characters, 2).size(), 2u);
  EXPECT_DOUBLE_EQ(jaccard({1, 2, 3}, {2, 3, 4}), 0.5);
  EXPECT_DOUBLE_EQ(jaccard({1}, {2}), 0);
  EXPECT_EQ(normalised_text(" A\u00a0\u3000b \n"), "a b");
}

TEST(SortedRuns, SortsWhatDoesNotFitIntoMemory) {
  const ScratchFolder folder;
  SortedRuns<int64_t> runs(folder.path(), 100 * sizeof(int64_t));
  std::mt19937_64 random(1);
  std::multiset<int64_t> wanted;
  for (int at = 0; at < 5000; ++at) {
    const auto value = static_cast<int64_t>(random() % 1000);
    wanted.insert(value);
    runs.add(value);
  }
  for (int round = 0; round < 2; ++round) {
    std::vector<int64_t> sorted;
    runs.for_each([&](int64_t value) { sorted.push_back(value); });
    EXPECT_EQ(sorted, std::vector<int64_t>(wanted.begin(), wanted.end()));
  }
}

}  // namespace
}  // namespace convoy::data
