// SPDX-License-Identifier: Apache-2.0
//
// Ownership of the Rust library's results.
#pragma once

#include <convoy_text.h>

#include <memory>
#include <string>
#include <string_view>

namespace convoy::text {

struct RustTokenizerFree {
  void operator()(ConvoyTokenizer* tokenizer) const { convoy_tokenizer_free(tokenizer); }
};
struct RustTemplateFree {
  void operator()(ConvoyTemplate* chat_template) const { convoy_template_free(chat_template); }
};
struct RustConversationFree {
  void operator()(ConvoyConversation* conversation) const {
    convoy_conversation_free(conversation);
  }
};
struct RustVocabularyFree {
  void operator()(const ConvoyVocabulary* vocabulary) const { convoy_vocabulary_free(vocabulary); }
};
struct RustGrammarFree {
  void operator()(ConvoyGrammar* grammar) const { convoy_grammar_free(grammar); }
};
using RustTokenizer = std::unique_ptr<ConvoyTokenizer, RustTokenizerFree>;
using RustTemplate = std::unique_ptr<ConvoyTemplate, RustTemplateFree>;
using RustConversation = std::unique_ptr<ConvoyConversation, RustConversationFree>;
using RustVocabulary = std::unique_ptr<const ConvoyVocabulary, RustVocabularyFree>;
using RustGrammar = std::unique_ptr<ConvoyGrammar, RustGrammarFree>;

inline const uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

// Copies the text and frees the original.
inline std::string take_text(ConvoyText text) {
  std::string copy(reinterpret_cast<const char*>(text.data), text.size);
  convoy_text_free(text);
  return copy;
}

}  // namespace convoy::text
