// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/text/tokenizer.h"

#include <limits>

#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/io/model_text.h"
#include "convoy/data/text/rust_handles.h"
#include "convoy/data/text/tokenizer_settings.h"
#include "convoy/data/text/tokenizer_state.h"

namespace convoy::text {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxTokenizerBytes = int64_t{128} << 20;

// Makes a tokenizer. The Rust library's errors name the place in the JSON.
RustTokenizer create(const std::string& json, const std::string& setup, const std::string& file) {
  ConvoyTokenizer* handle = nullptr;
  ConvoyText path{};
  ConvoyText error{};
  if (convoy_tokenizer_create(bytes_of(json), json.size(), bytes_of(setup), setup.size(), &handle,
                              &path, &error) == 0)
    return RustTokenizer(handle);
  const std::string key = path.data == nullptr ? "" : take_text(path);
  const std::string message = take_text(error);
  throw DataError(
      key.empty() ? message : fmt::format("{}: {}", key, message),
      {.file = file,
       .key = key,
       .hint = "get the tokenizer's files again, or save them with a newer transformers"});
}

std::optional<int32_t> id_in(const ConvoyTokenizer* tokenizer, std::string_view token) {
  const int64_t id = convoy_tokenizer_id(tokenizer, bytes_of(token), token.size());
  return id < 0 ? std::nullopt : std::optional(static_cast<int32_t>(id));
}

// True for bytes that never occur in UTF-8.
bool is_never_text(uint8_t byte) { return byte == 0xC0 || byte == 0xC1 || byte >= 0xF5; }

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

Tokenizer Tokenizer::load(const fs::path& folder, const std::string& eos_token) {
  const fs::path file = io::place_of_model_text(folder, "tokenizer.json");
  const auto found = io::find_model_text(folder, "tokenizer.json", kMaxTokenizerBytes);
  if (!found)
    throw DataError(
        "the folder has no tokenizer.json",
        {.file = file.string(),
         .hint = "save the tokenizer with transformers' save_pretrained, which writes it"});
  const std::string& json = *found;
  const TokenizerSettings settings = TokenizerSettings::load(folder, eos_token);
  const std::string setup = nlohmann::json({{"added_tokens", settings.added_tokens}}).dump();

  auto state = std::make_unique<State>();
  state->file = file.string();
  state->handle = create(json, setup, state->file);
  const ConvoyTokenizer* const handle = state->handle.get();
  const auto named_id = [&](const char* name) {
    const auto token = settings.named(name);
    return token ? id_in(handle, *token) : std::nullopt;
  };
  state->bos = named_id("bos_token");
  state->eos = named_id("eos_token");
  if (!eos_token.empty() && !state->eos)
    throw ConfigError(fmt::format("`{}` is no token of {}", eos_token, file.string()),
                      {.key = "data.eos_token", .hint = "name one of its tokens, or leave it out"});
  state->pad = named_id("pad_token");
  Sha256 hash;
  hash.update(json);
  hash.update(std::string_view("\0", 1));
  hash.update(settings.bytes);
  state->content_hash = hash.hex();

  Tokenizer tokenizer(std::move(state));
  const auto plain = tokenizer.encode("a", SpecialTokens::Omit).ids;
  const auto wrapped = tokenizer.encode("a", SpecialTokens::Add).ids;
  const bool longer = wrapped.size() > plain.size();
  tokenizer.state_->adds_bos = longer && tokenizer.bos_id() == wrapped.front();
  tokenizer.state_->adds_eos = longer && tokenizer.eos_id() == wrapped.back() &&
                               (plain.empty() || wrapped.back() != plain.back());
  return tokenizer;
}

Encoding Tokenizer::encode(std::string_view text, SpecialTokens special) const {
  ConvoyEncoding found{};
  ConvoyText error{};
  if (convoy_tokenizer_encode(state_->handle.get(), bytes_of(text), text.size(),
                              special == SpecialTokens::Add, &found, &error) != 0)
    throw DataError(take_text(error),
                    {.file = state_->file, .hint = "get the tokenizer's files again"});
  Encoding encoding;
  encoding.ids.assign(found.ids, found.ids + found.size);
  encoding.begins.assign(found.begins, found.begins + found.size);
  encoding.ends.assign(found.ends, found.ends + found.size);
  convoy_encoding_free(found);
  return encoding;
}

std::string Tokenizer::decode(const std::vector<int32_t>& ids, bool skip_special_tokens) const {
  ConvoyText text{};
  ConvoyText error{};
  if (convoy_tokenizer_decode(state_->handle.get(), ids.data(), ids.size(), skip_special_tokens,
                              &text, &error) != 0)
    throw DataError(take_text(error),
                    {.file = state_->file, .hint = "use the tokenizer that belongs to the model"});
  return take_text(text);
}

std::string Tokenizer::piece(int32_t id) const {
  ConvoyText text{};
  ConvoyText error{};
  if (convoy_tokenizer_piece(state_->handle.get(), id, &text, &error) != 0)
    throw DataError(take_text(error),
                    {.file = state_->file, .hint = "use the tokenizer that belongs to the model"});
  return take_text(text);
}

std::optional<int32_t> Tokenizer::id_of(std::string_view piece) const {
  return id_in(state_->handle.get(), piece);
}
int64_t Tokenizer::vocab_size() const { return convoy_tokenizer_vocab_size(state_->handle.get()); }
std::optional<int32_t> Tokenizer::bos_id() const { return state_->bos; }
std::optional<int32_t> Tokenizer::eos_id() const { return state_->eos; }
std::optional<int32_t> Tokenizer::pad_id() const { return state_->pad; }
bool Tokenizer::is_special(int32_t id) const {
  return convoy_tokenizer_is_special(state_->handle.get(), id) != 0;
}
bool Tokenizer::adds_bos() const { return state_->adds_bos; }
bool Tokenizer::adds_eos() const { return state_->adds_eos; }
std::string Tokenizer::missing_letters() const {
  const std::string missing = take_text(convoy_tokenizer_missing_bytes(state_->handle.get()));
  std::vector<std::string> letters;
  for (const char sign : missing) {
    const auto byte = static_cast<uint8_t>(sign);
    if (byte < 0x80) letters.push_back(fmt::format("U+{:04X}", byte));
    if (byte >= 0x80 && !is_never_text(byte))
      letters.push_back(fmt::format("those with the byte 0x{:02X}", byte));
  }
  if (letters.empty()) return "";
  return fmt::format(
      "the tokenizer cannot spell a few rare letters ({}; {} of 256 bytes have no token): a text "
      "that holds one is refused, all others are read",
      fmt::join(letters, ", "), missing.size());
}
const std::string& Tokenizer::content_hash() const { return state_->content_hash; }

}  // namespace convoy::text
