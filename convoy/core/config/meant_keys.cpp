// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/config/meant_keys.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "convoy/core/base/suggest.h"
#include "convoy/core/config/describe.h"

namespace convoy::config {
namespace {

using Words = std::vector<std::string>;

bool has(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Synonyms, mapped to the usual word.
std::string usual_word(std::string word) {
  static const std::map<std::string, std::string> kUsual = {
      {"every", "steps"},   {"interval", "steps"}, {"freq", "steps"},   {"frequency", "steps"},
      {"length", "len"},    {"rank", "r"},         {"log", "logging"},  {"folder", "dir"},
      {"directory", "dir"}, {"dataset", "data"},   {"gradient", "grad"}};
  const auto usual = kUsual.find(word);
  return usual == kUsual.end() ? std::move(word) : usual->second;
}

Words words_of(std::string_view name) {
  Words words;
  for (size_t begin = 0; begin < name.size();) {
    const size_t end = std::min(name.find_first_of("._-", begin), name.size());
    if (end > begin) words.push_back(usual_word(std::string(name.substr(begin, end - begin))));
    begin = end + 1;
  }
  return words;
}

// False for words that are too common to identify a key on their own.
bool says_something(const Words& words) {
  static constexpr std::array kCommon = {"name", "type",  "path",  "dir",  "size", "mode",
                                         "rate", "ratio", "steps", "file", "max",  "min",
                                         "num",  "len",   "model", "data", "train"};
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return std::find(kCommon.begin(), kCommon.end(), word) == kCommon.end();
  });
}

std::string_view last_part(std::string_view spelling) {
  const size_t dot = spelling.rfind('.');
  return dot == std::string_view::npos ? spelling : spelling.substr(dot + 1);
}

}  // namespace

MeantKeys::MeantKeys(const Section& list) {
  for_each_field(list, "", [this](const std::string& path, const Field& field) {
    Key key{.path = path, .names = {field.name}, .leaves = {}, .sections = {}};
    key.names.insert(key.names.end(), field.aliases.begin(), field.aliases.end());
    for (const std::string& name : key.names) key.leaves.push_back(words_of(name));
    key.sections = words_of(path.substr(0, path.size() - field.name.size()));
    keys_.push_back(std::move(key));
  });
}

std::string MeantKeys::in_full(std::string_view spelling) const {
  if (std::string path = found_by(spelling); !path.empty()) return path;
  const std::string name(last_part(spelling));
  if (!says_something(words_of(name))) return "";
  for (const Key& key : keys_)
    if (has(key.names, name)) return key.path;
  return "";
}

std::string MeantKeys::find(std::string_view spelling) const {
  if (std::string path = found_by(spelling); !path.empty()) return path;
  const std::string_view word = last_part(spelling);
  return says_something(words_of(word)) ? found_by(word) : "";
}

std::string MeantKeys::nearest(std::string_view spelling) const {
  constexpr size_t kLeastLetters = 5;  // a shorter word is near to too many names
  const std::string_view word = last_part(spelling);
  if (word.size() < kLeastLetters) return "";
  std::vector<std::string> names;
  for (const Key& key : keys_) names.insert(names.end(), key.names.begin(), key.names.end());
  const std::string near = nearest_word(word, names);
  return near.empty() ? "" : named(near);
}

std::string MeantKeys::found_by(std::string_view spelling) const {
  std::string path = named(spelling);
  return path.empty() ? with_words_of(spelling) : path;
}

std::string MeantKeys::named(std::string_view spelling) const {
  for (const Key& key : keys_) {
    std::string joined = key.path;
    std::replace(joined.begin(), joined.end(), '.', '_');
    if (key.path == spelling || joined == spelling || has(key.names, std::string(spelling)))
      return key.path;
  }
  return "";
}

// Returns the key that has all words of `spelling` and the fewest additional words (words of
// sections count less), or "" on a tie.
std::string MeantKeys::with_words_of(std::string_view spelling) const {
  constexpr size_t kMostMore = 2;  // additional words in a name; never more than `spelling` has
  const Words wanted = words_of(spelling);
  if (!says_something(wanted)) return "";
  std::string best;
  size_t fewest = std::numeric_limits<size_t>::max();
  bool is_unsure = false;
  for (const Key& key : keys_) {
    for (const Words& leaf : key.leaves) {
      const auto in_leaf = [&leaf](const std::string& word) { return has(leaf, word); };
      const bool has_all = std::all_of(wanted.begin(), wanted.end(), [&](const std::string& word) {
        return in_leaf(word) || has(key.sections, word);
      });
      if (!has_all || std::none_of(wanted.begin(), wanted.end(), in_leaf)) continue;
      const auto more = [&wanted](const Words& words) {
        return static_cast<size_t>(
            std::count_if(words.begin(), words.end(),
                          [&wanted](const std::string& word) { return !has(wanted, word); }));
      };
      if (more(leaf) > std::min(kMostMore, wanted.size())) continue;
      const size_t cost = 10 * more(leaf) + more(key.sections);
      if (cost > fewest || (cost == fewest && key.path == best)) continue;
      is_unsure = cost == fewest;
      fewest = cost;
      best = key.path;
    }
  }
  return is_unsure ? "" : best;
}

}  // namespace convoy::config
