// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/chain/row_content.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "convoy/core/base/hash.h"
#include "convoy/data/datasets/chain/row_shape.h"

namespace convoy::data {
namespace {

using Json = nlohmann::ordered_json;

size_t character_bytes(std::string_view text, size_t at) {
  const auto byte = static_cast<uint8_t>(text[at]);
  const size_t bytes = byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
  return std::min(bytes, text.size() - at);
}

// True for the white space of Unicode 15 (White_Space).
bool is_space(std::string_view character) {
  if (character.size() == 1)
    return character[0] == ' ' || (character[0] >= 9 && character[0] <= 13);
  constexpr std::array<std::string_view, 19> kSpaces = {
      "\u0085", "\u00A0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003",
      "\u2004", "\u2005", "\u2006", "\u2007", "\u2008", "\u2009", "\u200A",
      "\u2028", "\u2029", "\u202F", "\u205F", "\u3000"};
  return std::find(kSpaces.begin(), kSpaces.end(), character) != kSpaces.end();
}

// Ends each part of the text, so that moving a word from one turn to the next changes the text. No
// text contains a NUL.
constexpr char kPartEnd = '\0';

class ContentText {
 public:
  explicit ContentText(const ContentConfig& config) : config_(config) {}

  std::string of(const Sample& sample) {
    switch (sample.kind) {
      case Sample::Kind::Text:
        add("text", sample.text);
        break;
      case Sample::Kind::PromptCompletion:
        add("prompt", sample.prompt);
        add("completion", sample.completion);
        break;
      case Sample::Kind::Chat:
      case Sample::Kind::ChatPromptCompletion:
        add_messages(sample.messages);
        if (sample.completion_messages.is_array()) add_messages(sample.completion_messages);
        break;
    }
    return std::move(content_);
  }

 private:
  void add(std::string_view role, std::string_view text) {
    if (config_.roles) content_.append(role) += kPartEnd;
    content_ += config_.normalise ? normalised_text(text) : std::string(text);
    content_ += kPartEnd;
  }

  void add_messages(const Json& messages) {
    for (const Json& message : messages) {
      add(message["role"].get<std::string>(), content_text(message));
      for (const auto& [key, value] : message.items())
        if (key != "role" && key != "content") add(key, value.dump());
    }
  }

  const ContentConfig& config_;
  std::string content_;
};

std::string column_text(const Row& row, const std::string& column) {
  const auto found = row.value.is_object() ? row.value.find(column) : row.value.end();
  if (found == row.value.end())
    throw DataError(
        fmt::format("row {}: wanted the column `{}`, which is missing", row.index + 1, column),
        {.file = row.file,
         .line = row.line,
         .key = column,
         .hint = "name a column that every row has"});
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = character_bytes(text, at);
    const std::string_view character = text.substr(at, bytes);
    if (is_space(character) || character[0] == kPartEnd) {
      if (at > begin) words.push_back(text.substr(begin, at - begin));
      begin = at + bytes;
    }
    at += bytes;
  }
  if (text.size() > begin) words.push_back(text.substr(begin));
  return words;
}

std::vector<std::string_view> characters_of(std::string_view text) {
  std::vector<std::string_view> characters;
  for (size_t at = 0; at < text.size(); at += characters.back().size())
    characters.push_back(text.substr(at, character_bytes(text, at)));
  return characters;
}

}  // namespace

uint64_t hash_of(std::string_view bytes) {
  uint64_t hash = 0x9e3779b97f4a7c15ull ^ bytes.size();
  while (!bytes.empty()) {
    uint64_t word = 0;
    const size_t count = std::min<size_t>(8, bytes.size());
    std::memcpy(&word, bytes.data(), count);
    bytes.remove_prefix(count);
    // The finaliser of splitmix64, folded over the words.
    hash = (hash ^ word) + 0x9e3779b97f4a7c15ull;
    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9ull;
    hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebull;
    hash ^= hash >> 31;
  }
  return hash;
}

std::string normalised_text(std::string_view text) {
  std::string normalised;
  bool is_gap = false;
  for (size_t at = 0; at < text.size();) {
    const std::string_view character = text.substr(at, character_bytes(text, at));
    at += character.size();
    if (is_space(character)) {
      is_gap = !normalised.empty();
      continue;
    }
    if (is_gap) normalised += ' ';
    is_gap = false;
    const bool is_capital = character[0] >= 'A' && character[0] <= 'Z';
    if (is_capital) {
      normalised += static_cast<char>(character[0] - 'A' + 'a');
    } else {
      normalised += character;
    }
  }
  return normalised;
}

std::string row_content(const Row& row, const ContentConfig& config) {
  if (!config.column.empty()) {
    const std::string text = column_text(row, config.column);
    return config.normalise ? normalised_text(text) : text;
  }
  const Schema schema = detect_schema(row, config.schema);
  return ContentText(config).of(convert_row(row, schema, config.schema).sample);
}

std::vector<uint64_t> shingles(std::string_view text, ShingleUnit unit, int64_t length) {
  const std::vector<std::string_view> units =
      unit == ShingleUnit::Words ? words_of(text) : characters_of(text);
  std::vector<uint64_t> hashes;
  if (units.empty()) return hashes;
  const size_t count = std::min(units.size(), static_cast<size_t>(length));
  for (size_t first = 0; first + count <= units.size(); ++first) {
    uint64_t hash = count;
    for (size_t at = first; at < first + count; ++at) {
      const std::array<uint64_t, 2> words = {hash, hash_of(units[at])};
      hash = mix_seed(words);
    }
    hashes.push_back(hash);
  }
  std::sort(hashes.begin(), hashes.end());
  hashes.erase(std::unique(hashes.begin(), hashes.end()), hashes.end());
  return hashes;
}

double jaccard(const std::vector<uint64_t>& left, const std::vector<uint64_t>& right) {
  if (left.empty() && right.empty()) return 1;
  size_t both = 0;
  for (size_t at = 0, other = 0; at < left.size() && other < right.size();) {
    both += left[at] == right[other];
    const bool is_behind = left[at] <= right[other];
    other += right[other] <= left[at];
    at += is_behind;
  }
  return static_cast<double>(both) / static_cast<double>(left.size() + right.size() - both);
}

}  // namespace convoy::data
