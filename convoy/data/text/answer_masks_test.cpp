// SPDX-License-Identifier: Apache-2.0
//
// The tokens that a schema allows, place by place, beside the tokens of another engine (xgrammar;
// tests/golden/json_schema/make_masks.py).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "convoy/core/base/files.h"
#include "convoy/data/text/answer_grammar.h"
#include "files/source_folder.h"

namespace convoy::text {
namespace {

using Json = nlohmann::ordered_json;
using Ids = std::set<int32_t>;

// "1-3 7" as 1, 2, 3, 7.
Ids ids_in(const std::string& ranges) {
  Ids ids;
  std::istringstream words(ranges);
  for (std::string word; words >> word;) {
    const size_t dash = word.find('-');
    const int first = std::stoi(word);
    const int last = dash == std::string::npos ? first : std::stoi(word.substr(dash + 1));
    for (int id = first; id <= last; ++id) ids.insert(id);
  }
  return ids;
}

Ids allowed_at(GrammarPlace& place, int64_t num_ids, int32_t end) {
  std::vector<uint32_t> words(static_cast<size_t>(num_ids + 31) / 32);
  Ids ids;
  if (place.mask(false, words)) ids.insert(end);
  for (int32_t id = 0; id < num_ids; ++id)
    if ((words[static_cast<size_t>(id) / 32] >> (id % 32) & 1U) != 0) ids.insert(id);
  return ids;
}

// Deliberate differences, each of them a way to write the same JSON: xgrammar escapes any letter
// (`\/`, `\u0041`), ours only letters that need it; ours has -0, and does not write the byte 127.
bool is_known(const std::string& text, const std::string& piece, bool is_ours) {
  if (is_ours) return text.ends_with('-') && piece.starts_with('0');
  return piece.find('\x7f') != std::string::npos || piece.find("\\/") != std::string::npos ||
         piece.find("\\u") != std::string::npos ||
         (text.ends_with('\\') && (piece.starts_with('/') || piece.starts_with('u')));
}

// The pieces of `ids` that `others` lack, but for known differences.
std::string unknown(const Tokenizer& tokenizer, const std::string& text, const Ids& ids,
                    const Ids& others, bool are_ours) {
  std::string found;
  for (const int32_t id : ids) {
    if (others.contains(id)) continue;
    const std::string piece = tokenizer.decode({id}, false);
    if (!is_known(text, piece, are_ours)) found += fmt::format(" {}:`{}`", id, piece);
  }
  return found;
}

TEST(AnswerMasks, AreThoseOfAnotherEngine) {
  const Json golden =
      Json::parse(read_file(testing::source_folder() / "tests/golden/json_schema/masks.json"));
  for (const Json& of_folder : golden) {
    const std::string folder = of_folder["folder"];
    const Tokenizer tokenizer = Tokenizer::load(testing::source_folder() / folder);
    const GrammarCompiler compiler(tokenizer, tokenizer.vocab_size());
    int64_t places = 0;
    for (const Json& one : of_folder["cases"]) {
      const auto grammar = compiler.compile({GrammarKind::JsonSchema, one["schema"].dump()});
      for (const Json& walk : one["walks"]) {
        GrammarPlace place = grammar->begin();
        std::vector<int32_t> ids;
        std::string text;
        for (size_t at = 0; at < walk["masks"].size(); ++at, ++places) {
          const Ids ours = allowed_at(place, grammar->num_ids(), of_folder["end"]);
          const Ids theirs = ids_in(walk["masks"][at]);
          const std::string behind =
              fmt::format("{} {} behind `{}`", folder, one["schema"].dump(), text);
          EXPECT_EQ(unknown(tokenizer, text, ours, theirs, true), "") << "ours alone " << behind;
          EXPECT_EQ(unknown(tokenizer, text, theirs, ours, false), "") << "theirs alone " << behind;
          if (at == walk["ids"].size()) continue;
          place.take(walk["ids"][at]);
          ids.push_back(walk["ids"][at]);
          text = tokenizer.decode(ids, false);
        }
      }
    }
    EXPECT_GT(places, 150) << folder;
  }
}

}  // namespace
}  // namespace convoy::text
