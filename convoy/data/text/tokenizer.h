// SPDX-License-Identifier: Apache-2.0
//
// A Hugging Face tokenizer (tokenizer.json + tokenizer_config.json) through the Rust `tokenizers`
// crate, so ids are exact by construction. Thread-safe once built.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::text {

struct Encoding {
  std::vector<int32_t> ids;
  // Byte range [begin, end) of each token in the UTF-8 input. Tokens that a post-processor added
  // have begin == end.
  std::vector<int64_t> begins;
  std::vector<int64_t> ends;
};

enum class SpecialTokens {
  Add,
  Omit
};  // tokens that the post-processor adds around a text (BOS and similar)

class Tokenizer {
 public:
  // `folder`: a model folder. The JSON is checked while it is read (ids dense enough and in range,
  // merges in the vocabulary, depth and size limits). Throws DataError naming file and JSON path.
  // `eos_token`: replaces the folder's EOS; throws ConfigError when it is no token.
  static Tokenizer load(const std::filesystem::path& folder, const std::string& eos_token = {});
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // Throws DataError on invalid UTF-8, and for a character whose bytes the vocabulary lacks.
  // Special tokens written in `text` become their ids, as in Hugging Face.
  Encoding encode(std::string_view text, SpecialTokens special) const;
  std::string decode(const std::vector<int32_t>& ids, bool skip_special_tokens) const;
  std::string piece(int32_t id) const;  // the vocabulary entry, not decoded ("Ġthe")
  std::optional<int32_t> id_of(std::string_view piece) const;

  int64_t vocab_size() const;             // largest id + 1; added tokens count
  std::optional<int32_t> bos_id() const;  // from tokenizer_config.json
  std::optional<int32_t> eos_id() const;
  std::optional<int32_t> pad_id() const;
  bool is_special(int32_t id) const;
  bool adds_bos() const;  // true: encode() with Add puts bos_id first
  bool adds_eos() const;
  // A sentence that names the characters that encode() refuses; empty when it accepts all.
  std::string missing_letters() const;
  const std::string& content_hash() const;  // SHA-256 over the files that define the tokenizer

 private:
  friend class GrammarCompiler;
  struct State;
  explicit Tokenizer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace convoy::text
