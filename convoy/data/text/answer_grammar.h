// SPDX-License-Identifier: Apache-2.0
//
// Grammars that texts of a model must match: which tokens may come next. llguidance in the Rust
// library does the work (docs/decisions/0037-llguidance-for-grammars.md).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "convoy/data/text/tokenizer.h"

struct ConvoyVocabulary;

namespace convoy::text {

// JsonSchema: a JSON Schema, as JSON. Regex: the whole text matches it; in the syntax of Rust's
// regex crate. Choice: a JSON list of texts. Lark: a grammar in llguidance's form of Lark.
// LarkWithSchemas: {"lark": TEXT, "schemas": [...]}, where json_0, json_1, ... are rules of the
// grammar for texts of the schemas.
enum class GrammarKind { JsonSchema, Regex, Choice, Lark, LarkWithSchemas };

struct GrammarSource {
  GrammarKind kind = GrammarKind::JsonSchema;
  std::string text;
};

// A grammar and its place in one text. One thread.
class GrammarPlace {
 public:
  ~GrammarPlace();
  GrammarPlace(GrammarPlace&&) noexcept;

  // Sets the bit of each id that may come next, 32 ids a word, the lowest bit first. Returns true
  // when the text may end here. `begins_text`: the next token is the first of the text. Throws
  // DataError when the grammar needs more work for one token than its limits allow.
  bool mask(bool begins_text, std::span<uint32_t> words);
  void take(int32_t id);  // an id that mask() allowed; throws as mask()

 private:
  friend class AnswerGrammar;
  struct State;
  explicit GrammarPlace(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// A compiled grammar. Thread-safe.
class AnswerGrammar {
 public:
  ~AnswerGrammar();
  // The beginning of a text. Places with the same number of a lexer share the states that it finds,
  // and on several threads they would wait for each other. Lexers are made as they are asked for.
  GrammarPlace begin(size_t lexer = 0) const;
  int64_t num_ids() const { return num_ids_; }

 private:
  friend class GrammarCompiler;
  struct State;
  AnswerGrammar(std::unique_ptr<State> state, int64_t num_ids);
  std::unique_ptr<State> state_;
  int64_t num_ids_;
};

// Throws as GrammarCompiler::compile() would with a tokenizer that can write every text.
void check_grammar(const GrammarSource& source);

// Compiles grammars for one tokenizer. Thread-safe.
class GrammarCompiler {
 public:
  // `tokenizer` must outlive the compiler. `num_ids`: only ids below it may be drawn. The
  // vocabulary is read at the first compile(), which takes about a second for 150,000 tokens.
  GrammarCompiler(const Tokenizer& tokenizer, int64_t num_ids);
  ~GrammarCompiler();

  // Throws ConfigError naming what the grammar has that cannot be honoured.
  std::shared_ptr<const AnswerGrammar> compile(const GrammarSource& source) const;

 private:
  const ConvoyVocabulary* vocabulary() const;

  struct State;
  const Tokenizer& tokenizer_;
  int64_t num_ids_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<State> state_;  // null until the vocabulary is read
};

}  // namespace convoy::text
