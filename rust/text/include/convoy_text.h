// SPDX-License-Identifier: Apache-2.0
//
// C ABI of the Rust library: Hugging Face tokenizers, Jinja templates, grammars of texts. Every call returns 0, or 1 with `error` set;
// no panic or signal crosses it. Handles may be used from many threads at once.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ConvoyTokenizer ConvoyTokenizer;
typedef struct ConvoyTemplate ConvoyTemplate;
typedef struct ConvoyConversation ConvoyConversation;
typedef struct ConvoyVocabulary ConvoyVocabulary;
typedef struct ConvoyGrammar ConvoyGrammar;

// Owned bytes, not terminated by zero. Free with convoy_text_free.
typedef struct {
  uint8_t* data;
  size_t size;
} ConvoyText;

// Owned arrays of equal length. begins/ends: byte range of each token in the input.
typedef struct {
  int32_t* ids;
  int64_t* begins;
  int64_t* ends;
  size_t size;
} ConvoyEncoding;

// Owned. spans: 2 * num_spans byte offsets into text, begin and end of each generation block.
typedef struct {
  ConvoyText text;
  int64_t* spans;
  size_t num_spans;
} ConvoyRender;

void convoy_text_free(ConvoyText text);
void convoy_encoding_free(ConvoyEncoding encoding);
void convoy_render_free(ConvoyRender render);

// `json`: tokenizer.json. `setup`: {"added_tokens": tokens to add}, a list of {"content", "single_word", "lstrip",
// "rstrip", "normalized", "special", "id"?}; an id is checked. `path`: the place of an error in the JSON, owned; untouched
// where the error is of no place.
int convoy_tokenizer_create(const uint8_t* json, size_t json_size, const uint8_t* setup,
                            size_t setup_size, ConvoyTokenizer** tokenizer, ConvoyText* path,
                            ConvoyText* error);
void convoy_tokenizer_free(ConvoyTokenizer* tokenizer);
int convoy_tokenizer_encode(const ConvoyTokenizer* tokenizer, const uint8_t* text, size_t size,
                            int add_special, ConvoyEncoding* encoding, ConvoyText* error);
int convoy_tokenizer_decode(const ConvoyTokenizer* tokenizer, const int32_t* ids, size_t size,
                            int skip_special, ConvoyText* text, ConvoyText* error);
// -1 when unknown.
int64_t convoy_tokenizer_id(const ConvoyTokenizer* tokenizer, const uint8_t* token, size_t size);
// 1 and an error when unknown.
int convoy_tokenizer_piece(const ConvoyTokenizer* tokenizer, int32_t id, ConvoyText* piece,
                           ConvoyText* error);
int64_t convoy_tokenizer_vocab_size(const ConvoyTokenizer* tokenizer);  // largest id + 1
// Bytes that no token spells, for a byte-level vocabulary: a text that needs one cannot be encoded. Often none. Owned.
ConvoyText convoy_tokenizer_missing_bytes(const ConvoyTokenizer* tokenizer);
int convoy_tokenizer_is_special(const ConvoyTokenizer* tokenizer, int32_t id);

// `line`: 1-based template line of an error, 0 when unknown.
int convoy_template_create(const uint8_t* source, size_t size, ConvoyTemplate** chat_template,
                           int64_t* line, ConvoyText* error);
void convoy_template_free(ConvoyTemplate* chat_template);
int convoy_template_has_generation(const ConvoyTemplate* chat_template);
// `json`: an object with `messages`, a list, and the other variables. A conversation belongs to the thread that read it.
int convoy_conversation_read(const uint8_t* json, size_t size, ConvoyConversation** conversation,
                             ConvoyText* error);
void convoy_conversation_free(ConvoyConversation* conversation);
// The first `num_messages`, or all if there are fewer. `clock_s`: what strftime_now takes for the time, since 1970.
int convoy_template_render(const ConvoyTemplate* chat_template,
                           const ConvoyConversation* conversation, size_t num_messages,
                           int add_generation_prompt, int64_t clock_s, ConvoyRender* render,
                           int64_t* line, ConvoyText* error);

// The first `num_ids` tokens as bytes, for grammars. An error where the decoder does not say them.
int convoy_vocabulary_create(const ConvoyTokenizer* tokenizer, size_t num_ids,
                             const ConvoyVocabulary** vocabulary, ConvoyText* error);
void convoy_vocabulary_free(const ConvoyVocabulary* vocabulary);

// CHOICE: a JSON list of texts. LARK_WITH_SCHEMAS: {"lark": TEXT, "schemas": [...]}, where json_0, json_1, ... are rules for the
// texts of the schemas.
typedef enum {
  CONVOY_JSON_SCHEMA,
  CONVOY_REGEX,
  CONVOY_CHOICE,
  CONVOY_LARK,
  CONVOY_LARK_WITH_SCHEMAS
} ConvoyGrammarKind;
// A grammar at the beginning of a text. An error names what the grammar has that is not covered. A grammar keeps what it
// needs of the vocabulary. Calls for one grammar come one after the other; a copy is another grammar at the same place.
int convoy_grammar_compile(const ConvoyVocabulary* vocabulary, ConvoyGrammarKind kind,
                           const uint8_t* source, size_t size, ConvoyGrammar** grammar,
                           ConvoyText* error);
// An error as of convoy_grammar_compile, for a grammar over any vocabulary.
int convoy_grammar_check(ConvoyGrammarKind kind, const uint8_t* source, size_t size,
                         ConvoyText* error);
// Copies without a lexer of their own share its states, which each finds for all, and wait for each other on several threads.
// Null: no memory.
ConvoyGrammar* convoy_grammar_copy(const ConvoyGrammar* grammar, int own_lexer);
void convoy_grammar_free(ConvoyGrammar* grammar);
// `words`: 32 ids each; the bit of an id that may come next is 1. `begins_text`: the token will be the first of the text.
// `may_end`: 1 where the text may end here. An error where the grammar needs more work than its limits allow.
int convoy_grammar_mask(ConvoyGrammar* grammar, int begins_text, uint32_t* words, size_t num_words,
                        int* may_end, ConvoyText* error);
int convoy_grammar_take(ConvoyGrammar* grammar, int32_t id,
                        ConvoyText* error);  // an id that convoy_grammar_mask allowed

typedef enum { CONVOY_LETTER_OTHER, CONVOY_LETTER_OR_NUMBER, CONVOY_MARK } ConvoyLetterClass;

// Python's str.isalnum(), or a mark that follows a letter; `code` is of any character.
ConvoyLetterClass convoy_letter_class(uint32_t code);
// Python's str.lower() and str.casefold(). Bytes that are not UTF-8 stay as they are.
ConvoyText convoy_text_lowered(const uint8_t* text, size_t size);
ConvoyText convoy_text_case_folded(const uint8_t* text, size_t size);

#ifdef __cplusplus
}
#endif
