// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/chain/benchmark_overlap.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "convoy/core/base/utf8.h"
#include "convoy/data/datasets/chain/row_content.h"

namespace convoy::data {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostRowsOfARun = 10;
constexpr size_t kShownBytes = 120;

// Whether a character is punctuation that is not ASCII: of Latin-1 (U+0080 to U+00BF), general
// (U+2000 to U+206F), of Chinese and Japanese (U+3000 to U+303F).
bool is_wide_punctuation(std::string_view at) {
  return at.starts_with("\xC2") || at.starts_with("\xE2\x80") || at.starts_with("\xE2\x81") ||
         at.starts_with("\xE3\x80");
}

// The words of the text in lower case, with spaces between them, so that shingles() finds them.
std::string words_alone(std::string_view text) {
  // Characters from U+3000 on have at least three bytes, the first of which is 0xE3 or more.
  constexpr auto kFirstWordlike = static_cast<unsigned char>(0xE3);
  const std::string normal = normalised_text(text);
  std::string words;
  for (size_t at = 0; at < normal.size(); ++at) {
    if (const std::string_view rest = std::string_view(normal).substr(at);
        is_wide_punctuation(rest)) {
      words += ' ';
      at += rest.front() == '\xC2' ? 1 : 2;
      continue;
    }
    const char character = normal[at];
    const auto byte = static_cast<unsigned char>(character);
    const bool is_letter =
        byte >= 0x80 || (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9');
    if (byte >= kFirstWordlike && !words.empty()) words += ' ';
    words += is_letter ? character : ' ';
  }
  return words;
}

int64_t num_words(std::string_view words) {
  int64_t count = 0;
  bool is_within = false;
  for (const char character : words) {
    count += character != ' ' && !is_within;
    is_within = character != ' ';
  }
  return count;
}

// Calls `take` for every string of a row.
template <class Take>
void for_each_text(const Json& value, const Take& take) {
  if (value.is_string()) take(value.get_ref<const std::string&>());
  if (value.is_structured())
    for (const Json& part : value) for_each_text(part, take);
}

}  // namespace

void BenchmarkIndex::add(const Json& row) {
  for_each_text(row, [&](const std::string& text) {
    const std::string words = words_alone(text);
    if (num_words(words) < config_.ngram_words) return;
    texts_.push_back({.row = rows_,
                      .beginning = text.substr(0, whole_characters_bytes(text, kShownBytes)),
                      .hashes = shingles(words, ShingleUnit::Words, config_.ngram_words)});
  });
  ++rows_;
}

void BenchmarkIndex::finish() {
  // Texts with the same runs in several rows are instructions.
  std::unordered_map<uint64_t, std::set<int64_t>> rows_of_text;
  const auto key = [](const Text& text) {
    return hash_of(
        {reinterpret_cast<const char*>(text.hashes.data()), text.hashes.size() * sizeof(uint64_t)});
  };
  for (const Text& text : texts_) rows_of_text[key(text)].insert(text.row);
  std::erase_if(texts_, [&](const Text& text) { return rows_of_text[key(text)].size() > 1; });
  for (size_t index = 0; index < texts_.size(); ++index)
    for (const uint64_t hash : texts_[index].hashes)
      texts_of_run_[hash].push_back(static_cast<uint32_t>(index));
  std::erase_if(texts_of_run_, [](const auto& run) { return run.second.size() > kMostRowsOfARun; });
  for (Text& text : texts_)
    for (const uint64_t hash : std::exchange(text.hashes, {}))
      text.runs += texts_of_run_.contains(hash);
}

int64_t BenchmarkIndex::rows_without_text() const {
  std::set<int64_t> with_text;
  for (const Text& text : texts_)
    if (text.runs > 0) with_text.insert(text.row);
  return rows_ - std::ssize(with_text);
}

std::optional<Overlap> BenchmarkIndex::find(const Json& row) const {
  std::set<uint64_t> runs;
  for_each_text(row, [&](const std::string& text) {
    const std::string words = words_alone(text);
    if (num_words(words) < config_.ngram_words) return;
    for (const uint64_t hash : shingles(words, ShingleUnit::Words, config_.ngram_words))
      if (texts_of_run_.contains(hash)) runs.insert(hash);
  });
  std::unordered_map<uint32_t, int64_t> shared;
  for (const uint64_t hash : runs)
    for (const uint32_t text : texts_of_run_.at(hash)) ++shared[text];
  std::optional<Overlap> most;
  for (const auto& [index, count] : shared) {
    const Text& text = texts_[index];
    const double share = static_cast<double>(count) / static_cast<double>(text.runs);
    const bool is_more =
        !most || share > most->share || (share == most->share && text.row < most->benchmark_row);
    if (share >= config_.share && is_more) most = {text.row, share, text.beginning};
  }
  return most;
}

}  // namespace convoy::data
