// SPDX-License-Identifier: Apache-2.0
//
// Grammars over real vocabularies: byte-level, and SentencePiece's with a letter for the space. The
// grammars themselves are tested in rust/text/src/grammar.rs.
#include "convoy/data/text/answer_grammar.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "convoy/core/base/error.h"
#include "files/source_folder.h"

namespace convoy::text {
namespace {

using testing::source_folder;

// The text of a walk that takes the allowed token with the longest piece until the text may end.
std::string longest_steps(const Tokenizer& tokenizer, const AnswerGrammar& grammar) {
  constexpr size_t kMostTokens = 200;
  GrammarPlace place = grammar.begin();
  std::vector<uint32_t> words(static_cast<size_t>(grammar.num_ids() + 31) / 32);
  std::vector<int32_t> ids;
  while (!place.mask(ids.empty(), words) && ids.size() < kMostTokens) {
    int32_t best = -1;
    for (int32_t id = 0; id < grammar.num_ids(); ++id) {
      if ((words[static_cast<size_t>(id) / 32] >> (id % 32) & 1U) == 0) continue;
      if (best < 0 || tokenizer.piece(id).size() > tokenizer.piece(best).size()) best = id;
    }
    if (best < 0) return "stuck behind " + tokenizer.decode(ids, true);
    place.take(best);
    ids.push_back(best);
  }
  return tokenizer.decode(ids, true);
}

TEST(AnswerGrammar, TextsOfEveryKindOfVocabularyAreTheGrammarsOwn) {
  for (const char* const folder :
       {"examples/tally-3m", "tests/golden/text/metaspace", "tests/golden/text/unigram"}) {
    const Tokenizer tokenizer = Tokenizer::load(source_folder() / folder);
    const GrammarCompiler compiler(tokenizer, tokenizer.vocab_size());
    const auto expect_text = [&](const GrammarSource& source, const std::string& text) {
      EXPECT_EQ(longest_steps(tokenizer, *compiler.compile(source)), text) << folder;
    };
    expect_text({GrammarKind::Choice, R"(["yes"])"}, "yes");
    expect_text({GrammarKind::Choice, R"(["a  b"])"}, "a  b");
    expect_text({GrammarKind::Regex, R"(\[1, 2, ab\])"}, "[1, 2, ab]");
  }
}

TEST(AnswerGrammar, ABeginningIsUsedManyTimes) {
  const Tokenizer tokenizer = Tokenizer::load(source_folder() / "examples/tally-3m");
  const GrammarCompiler compiler(tokenizer, tokenizer.vocab_size());
  const auto grammar = compiler.compile({GrammarKind::Choice, R"(["12"])"});
  for (int time = 0; time < 3; ++time) EXPECT_EQ(longest_steps(tokenizer, *grammar), "12");
}

TEST(AnswerGrammar, WhatIsNotCoveredIsRefusedByName) {
  const Tokenizer tokenizer = Tokenizer::load(source_folder() / "examples/tally-3m");
  const GrammarCompiler compiler(tokenizer, tokenizer.vocab_size());
  const auto refusal = [](const GrammarCompiler& by, const GrammarSource& source) -> std::string {
    try {
      by.compile(source);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_NE(refusal(compiler, {GrammarKind::JsonSchema, R"({"not": {"type": "null"}})"})
                .find("the JSON Schema cannot be honoured: keywords that are not covered: \"not\""),
            std::string::npos);
  EXPECT_NE(refusal(compiler, {GrammarKind::Regex, "("}).find("regular expression"),
            std::string::npos);
  EXPECT_THROW(check_grammar({GrammarKind::JsonSchema, R"({"not": {}})"}), ConfigError);
  EXPECT_NO_THROW(check_grammar({GrammarKind::JsonSchema, R"({"type": "null"})"}));
  const Tokenizer pieces = Tokenizer::load(source_folder() / "tests/golden/text/wordpiece");
  const GrammarCompiler of_pieces(pieces, pieces.vocab_size());
  EXPECT_NE(refusal(of_pieces, {GrammarKind::Choice, R"(["a"])"}).find("bytes of its tokens"),
            std::string::npos);
}

}  // namespace
}  // namespace convoy::text
