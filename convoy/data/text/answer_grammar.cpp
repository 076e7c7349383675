// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/text/answer_grammar.h"

#include <utility>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/data/text/rust_handles.h"
#include "convoy/data/text/tokenizer_state.h"

namespace convoy::text {
namespace {

ConvoyGrammarKind rust_kind(GrammarKind kind) {
  switch (kind) {
    case GrammarKind::JsonSchema:
      return CONVOY_JSON_SCHEMA;
    case GrammarKind::Regex:
      return CONVOY_REGEX;
    case GrammarKind::Choice:
      return CONVOY_CHOICE;
    case GrammarKind::Lark:
      return CONVOY_LARK;
    case GrammarKind::LarkWithSchemas:
      break;
  }
  return CONVOY_LARK_WITH_SCHEMAS;
}

std::string_view name_of(GrammarKind kind) {
  switch (kind) {
    case GrammarKind::JsonSchema:
      return "JSON Schema";
    case GrammarKind::Regex:
      return "regular expression";
    case GrammarKind::Choice:
      return "list of choices";
    case GrammarKind::Lark:
    case GrammarKind::LarkWithSchemas:
      break;
  }
  return "grammar";
}

[[noreturn]] void throw_refused(const GrammarSource& source, ConvoyText error) {
  throw ConfigError(
      fmt::format("the {} cannot be honoured: {}", name_of(source.kind), take_text(error)),
      {.hint =
           "change the schema or grammar: docs/reference/json-schema.md lists what is covered"});
}

[[noreturn]] void throw_limits(ConvoyText error) {
  throw DataError(
      fmt::format("the grammar cannot say the next token: {}", take_text(error)),
      {.hint = "make the grammar simpler: fewer alternatives and smaller counts of repetitions"});
}

}  // namespace

struct GrammarPlace::State {
  RustGrammar handle;
};
GrammarPlace::GrammarPlace(std::unique_ptr<State> state) : state_(std::move(state)) {}
GrammarPlace::~GrammarPlace() = default;
GrammarPlace::GrammarPlace(GrammarPlace&&) noexcept = default;

bool GrammarPlace::mask(bool begins_text, std::span<uint32_t> words) {
  int may_end = 0;
  ConvoyText error{};
  if (convoy_grammar_mask(state_->handle.get(), begins_text ? 1 : 0, words.data(), words.size(),
                          &may_end, &error) != 0)
    throw_limits(error);
  return may_end != 0;
}

void GrammarPlace::take(int32_t id) {
  ConvoyText error{};
  if (convoy_grammar_take(state_->handle.get(), id, &error) != 0) throw_limits(error);
}

struct AnswerGrammar::State {
  std::mutex mutex;  // guards `beginnings`: the Rust library takes one call at a time
  std::vector<RustGrammar> beginnings;  // one for each lexer
};

namespace {

RustGrammar copy_of(const RustGrammar& place, bool has_own_lexer) {
  RustGrammar copy(convoy_grammar_copy(place.get(), has_own_lexer ? 1 : 0));
  CONVOY_INVARIANT(copy != nullptr, "a grammar could not be copied");
  return copy;
}

}  // namespace

AnswerGrammar::AnswerGrammar(std::unique_ptr<State> state, int64_t num_ids)
    : state_(std::move(state)), num_ids_(num_ids) {}
AnswerGrammar::~AnswerGrammar() = default;

GrammarPlace AnswerGrammar::begin(size_t lexer) const {
  const std::lock_guard lock(state_->mutex);
  std::vector<RustGrammar>& beginnings = state_->beginnings;
  while (beginnings.size() <= lexer) beginnings.push_back(copy_of(beginnings.front(), true));
  return GrammarPlace(std::make_unique<GrammarPlace::State>(
      GrammarPlace::State{.handle = copy_of(beginnings[lexer], false)}));
}

void check_grammar(const GrammarSource& source) {
  ConvoyText error{};
  if (convoy_grammar_check(rust_kind(source.kind), bytes_of(source.text), source.text.size(),
                           &error) != 0)
    throw_refused(source, error);
}

struct GrammarCompiler::State {
  RustVocabulary handle;
};
GrammarCompiler::GrammarCompiler(const Tokenizer& tokenizer, int64_t num_ids)
    : tokenizer_(tokenizer), num_ids_(num_ids) {}
GrammarCompiler::~GrammarCompiler() = default;

const ConvoyVocabulary* GrammarCompiler::vocabulary() const {
  const std::lock_guard lock(mutex_);
  if (state_ == nullptr) {
    const ConvoyVocabulary* handle = nullptr;
    ConvoyText error{};
    if (convoy_vocabulary_create(tokenizer_.state_->handle.get(), static_cast<size_t>(num_ids_),
                                 &handle, &error) != 0)
      throw ConfigError(take_text(error),
                        {.hint = "use a model with another tokenizer, or ask for free text"});
    state_ = std::make_unique<State>(State{.handle = RustVocabulary(handle)});
  }
  return state_->handle.get();
}

std::shared_ptr<const AnswerGrammar> GrammarCompiler::compile(const GrammarSource& source) const {
  ConvoyGrammar* handle = nullptr;
  ConvoyText error{};
  if (convoy_grammar_compile(vocabulary(), rust_kind(source.kind), bytes_of(source.text),
                             source.text.size(), &handle, &error) != 0)
    throw_refused(source, error);
  auto state = std::make_unique<AnswerGrammar::State>();
  state->beginnings.emplace_back(handle);
  return std::shared_ptr<const AnswerGrammar>(new AnswerGrammar(std::move(state), num_ids_));
}

}  // namespace convoy::text
