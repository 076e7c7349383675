// SPDX-License-Identifier: Apache-2.0
#include "convoy/generate/engine/row_grammar.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ranges>

#include "convoy/generate/engine/thought_ids.h"
#include "files/source_folder.h"

namespace convoy::generate {
namespace {

class RowGrammarTest : public ::testing::Test {
 protected:
  int32_t id_of(const std::string& piece) const { return tokenizer_.id_of(piece).value(); }
  AnswerForm form(const std::string& choices) const {
    return {.grammar = compiler_.compile({text::GrammarKind::Choice, choices})};
  }
  static bool allows(RowGrammar& grammar, int32_t id) {
    return (grammar.allowed()[static_cast<size_t>(id) / 32] >> (id % 32) & 1U) != 0;
  }

  text::Tokenizer tokenizer_ =
      text::Tokenizer::load(testing::source_folder() / "examples/tally-3m");
  text::GrammarCompiler compiler_{tokenizer_, tokenizer_.vocab_size()};
  int32_t end_ = tokenizer_.eos_id().value();
};

TEST_F(RowGrammarTest, EndsWhereTheGrammarDoes) {
  RowGrammar grammar(form(R"(["1", "12"])"), {end_});
  EXPECT_TRUE(allows(grammar, id_of("1")));
  EXPECT_FALSE(allows(grammar, id_of("2")));
  EXPECT_FALSE(allows(grammar, end_));
  grammar.take(id_of("1"));
  EXPECT_TRUE(allows(grammar, id_of("2")));
  EXPECT_TRUE(allows(grammar, end_));
  grammar.take(id_of("2"));
  EXPECT_FALSE(allows(grammar, id_of("2")));
  EXPECT_TRUE(allows(grammar, end_));
  grammar.take(end_);
  EXPECT_EQ(grammar.problem(), "");
}

TEST_F(RowGrammarTest, RowsOfSeveralLexersFindTheSame) {
  const AnswerForm asked = form(R"(["12", "1 3", "1234"])");
  RowGrammar alone(asked, {end_});
  std::vector<RowGrammar> rows;
  for (size_t row = 0; row < 7; ++row)
    rows.emplace_back(asked, std::vector<int32_t>{end_}, row % 3);
  std::vector<RowGrammar*> found;
  for (RowGrammar& row : rows) found.push_back(&row);
  for (const std::string piece : {"1", "2", "3"}) {
    find_allowed(found);
    const std::span<const uint32_t> wanted = alone.allowed();
    for (RowGrammar& row : rows) {
      EXPECT_TRUE(std::ranges::equal(row.words(), wanted));
      EXPECT_TRUE(allows(row, id_of(piece)));
      row.take(id_of(piece));
    }
    alone.take(id_of(piece));
  }
}

// Two other tokens of the bundled model stand for the tags.
TEST_F(RowGrammarTest, BeginsBehindThoughts) {
  const int32_t open = id_of("<|im_start|>");
  const int32_t close = id_of("!");
  AnswerForm asked = form(R"(["1"])");
  asked.thoughts = {.begin = open, .end = close};
  RowGrammar thinks(asked, {end_});
  EXPECT_TRUE(allows(thinks, open) && allows(thinks, id_of("1")));
  EXPECT_FALSE(allows(thinks, id_of("2")));
  thinks.take(open);
  EXPECT_TRUE(allows(thinks, id_of("2")) && allows(thinks, close));
  EXPECT_FALSE(allows(thinks, end_)) << "a thought is no answer";
  thinks.take(id_of("2"));
  thinks.take(close);
  EXPECT_TRUE(allows(thinks, id_of("1")));
  EXPECT_FALSE(allows(thinks, id_of("2")) || allows(thinks, open) || allows(thinks, end_));

  asked.thoughts.are_open = true;
  RowGrammar goes_on(asked, {end_});
  EXPECT_TRUE(allows(goes_on, id_of("2")));
  goes_on.take(close);
  EXPECT_FALSE(allows(goes_on, id_of("2")));
  EXPECT_TRUE(allows(goes_on, id_of("1")));
}

TEST_F(RowGrammarTest, AGrammarThatCannotGoOnEndsTheAnswer) {
  // A vocabulary up to "1" cannot write the "2".
  const int64_t num_ids = id_of("1") + 1;
  ASSERT_GE(id_of("2"), num_ids);
  ASSERT_LT(end_, num_ids);
  const text::GrammarCompiler compiler(tokenizer_, num_ids);
  RowGrammar grammar({.grammar = compiler.compile({text::GrammarKind::Choice, R"(["12"])"})},
                     {end_});
  EXPECT_TRUE(allows(grammar, id_of("1")));
  EXPECT_EQ(grammar.problem(), "");
  grammar.take(id_of("1"));
  EXPECT_TRUE(allows(grammar, end_));
  EXPECT_FALSE(allows(grammar, id_of("1")));
  EXPECT_NE(grammar.problem().find("no token of the vocabulary"), std::string::npos)
      << grammar.problem();
  grammar.take(end_);
  EXPECT_NE(grammar.problem(), "") << "an end that the grammar did not allow";
}

TEST_F(RowGrammarTest, AModelWithoutTagsHasNoThoughts) {
  EXPECT_LT(thought_ids({1, 2, 3}, tokenizer_).begin, 0);
}

}  // namespace
}  // namespace convoy::generate
