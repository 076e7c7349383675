// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/io/gguf/tokenizer_metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "convoy/core/base/error.h"
#include "convoy/core/io/gguf/pre_tokenizer.h"
#include "convoy/core/io/gguf/tokenizer_text.h"

namespace convoy::gguf {
namespace {

using io::Json;

constexpr std::string_view kPieceMark = "\xe2\x96\x81";  // for a space, in SentencePiece's pieces

const Json kNoJson;

const Json& at(const Json& json, const char* key) {
  if (!json.is_object()) return kNoJson;
  const auto found = json.find(key);
  return found == json.end() ? kNoJson : *found;
}

bool is(const Json& json, const char* key, std::string_view text) {
  return at(json, key).is_string() && at(json, key).get_ref<const std::string&>() == text;
}

bool truth(const Json& json, const char* key) {
  return at(json, key).is_boolean() && at(json, key).get<bool>();
}

// The list of steps, where `json` is one step or a sequence of steps.
std::vector<Json> steps_of(const Json& json, const char* list) {
  if (json.is_null()) return {};
  if (!is(json, "type", "Sequence") || !at(json, list).is_array()) return {json};
  std::vector<Json> steps;
  for (const Json& step : at(json, list)) steps.push_back(step);
  return steps;
}

struct TokenLists {
  std::vector<std::string> texts;
  std::vector<int64_t> types;
};

class Translation {
 public:
  Translation(const TokenizerFiles& files, int64_t vocab_size, Metadata& metadata)
      : files_(files),
        model_(at(files.tokenizer, "model")),
        vocab_size_(vocab_size),
        metadata_(metadata) {}

  std::vector<std::string> run() {
    if (!is(model_, "type", "BPE") || !at(model_, "vocab").is_object() ||
        !at(model_, "merges").is_array())
      refuse("model.type",
             "llama.cpp has no such tokenizer; byte-level and SentencePiece's BPE "
             "can be written");
    list_tokens();
    if (truth(model_, "byte_fallback") && files_.lists_merges)
      add_pieces_with_merges();
    else if (truth(model_, "byte_fallback"))
      add_sentencepiece();
    else
      add_byte_level();
    metadata_.texts("tokenizer.ggml.tokens", tokens_.texts);
    if (!scores_.empty()) metadata_.reals("tokenizer.ggml.scores", scores_);
    metadata_.numbers("tokenizer.ggml.token_type", tokens_.types);
    if (!merges_.empty()) metadata_.texts("tokenizer.ggml.merges", merges_);
    add_named_tokens();
    add_tokens_around();
    if (!files_.chat_template.empty())
      metadata_.text("tokenizer.chat_template", files_.chat_template);
    return std::move(notices_);
  }

 private:
  [[noreturn]] void refuse(const std::string& key, const std::string& message) const {
    throw DataError(
        fmt::format("{}: {}", key, message),
        {.file = files_.place, .key = key, .hint = "the model can be used in Hugging Face layout"});
  }

  size_t id_of(const Json& value, const std::string& key) const {
    if (!value.is_number_integer() || value.get<int64_t>() < 0 ||
        value.get<int64_t>() >= vocab_size_)
      refuse(key, fmt::format("wanted an id below the model's {} rows", vocab_size_));
    return static_cast<size_t>(value.get<int64_t>());
  }

  void list_tokens() {
    for (int64_t id = 0; id < vocab_size_; ++id)
      tokens_.texts.push_back(fmt::format("[PAD{}]", id));
    tokens_.types.assign(static_cast<size_t>(vocab_size_), kUnusedToken);
    for (const auto& [token, value] : at(model_, "vocab").items()) {
      const size_t id = id_of(value, fmt::format("model.vocab[`{:.60}`]", token));
      tokens_.texts[id] = token;
      tokens_.types[id] = kNormalToken;
    }
    for (const Json& added : at(files_.tokenizer, "added_tokens")) {
      const size_t id = id_of(at(added, "id"), "added_tokens");
      if (!at(added, "content").is_string()) refuse("added_tokens", "wanted texts as content");
      tokens_.texts[id] = at(added, "content").get<std::string>();
      tokens_.types[id] = truth(added, "special") ? kControlToken : kUserToken;
      const bool has_mark = tokens_.texts[id].find(kPieceMark) != std::string::npos;
      if (files_.lists_merges && has_mark && at(model_, "vocab").contains(tokens_.texts[id])) {
        tokens_.types[id] = kNormalToken;  // merges make it of spaces, as in transformers
      } else if (tokens_.types[id] == kUserToken) {
        // llama.cpp searches for these tokens before it replaces spaces by marks.
        std::string& text = tokens_.texts[id];
        for (size_t found = 0; (found = text.find(kPieceMark, found)) != std::string::npos; ++found)
          text.replace(found, kPieceMark.size(), " ");
      }
      if (truth(added, "lstrip") || truth(added, "rstrip") || truth(added, "single_word"))
        notices_.push_back(fmt::format(
            "`{}` takes spaces beside it, or stands only between words (lstrip, rstrip, "
            "single_word); llama.cpp leaves that out",
            at(added, "content").get<std::string>()));
    }
  }

  void read_merges() {
    for (const Json& merge : at(model_, "merges")) {
      if (merge.is_string()) {
        const std::string& text = merge.get_ref<const std::string&>();
        const size_t space = text.find(' ', 1);
        if (space == std::string::npos) refuse("model.merges", "wanted two tokens");
        pairs_.emplace_back(text.substr(0, space), text.substr(space + 1));
      } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
                 merge[1].is_string()) {
        pairs_.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
      } else {
        refuse("model.merges", "wanted two tokens");
      }
    }
  }

  void add_byte_level() {
    const bool ignores = truth(model_, "ignore_merges");
    const PreTokenizer* const pre =
        matching_pre_tokenizer(at(files_.tokenizer, "pre_tokenizer"), ignores);
    if (pre == nullptr)
      refuse("pre_tokenizer", "llama.cpp has no name for the way in which it cuts texts");
    for (const Json& step : steps_of(at(files_.tokenizer, "normalizer"), "normalizers")) {
      if (!is(step, "type", "NFC"))
        refuse("normalizer",
               "llama.cpp changes no texts before it cuts them; only NFC may be left "
               "out");
      notices_.push_back(
          "llama.cpp leaves out the tokenizer's normaliser (NFC): letters that are written in "
          "several parts get other tokens there");
    }
    read_merges();
    list_merges("a byte-level token");
    metadata_.text("tokenizer.ggml.model", "gpt2");
    metadata_.text("tokenizer.ggml.pre", pre->names.front());
  }

  void list_merges(const char* what) {
    for (const auto& [left, right] : pairs_) {
      if (left.find(' ') != std::string::npos || right.find(' ') != std::string::npos)
        refuse("model.merges", fmt::format("a merge holds a space, which {} has not", what));
      merges_.push_back(left + " " + right);
    }
  }

  // True when a space is put before the first word. Refuses steps that SentencePiece does not have.
  bool puts_space_first() const {
    bool prefix = false, marks = false;
    for (const Json& step : steps_of(at(files_.tokenizer, "normalizer"), "normalizers")) {
      if (is(step, "type", "Prepend") && is(step, "prepend", kPieceMark))
        prefix = true;
      else if (is(step, "type", "Replace") && is(at(step, "pattern"), "String", " ") &&
               is(step, "content", kPieceMark))
        marks = true;
      else
        refuse("normalizer", "llama.cpp has no such step");
    }
    for (const Json& step : steps_of(at(files_.tokenizer, "pre_tokenizer"), "pretokenizers")) {
      if (is(step, "type", "Metaspace") && is(step, "replacement", kPieceMark)) {
        marks = true;
        prefix = prefix || !is(step, "prepend_scheme", "never");
      } else if (!(is(step, "type", "Split") && marks &&
                   is(at(step, "pattern"), "String", " "))) {  // finds no space any more
        refuse("pre_tokenizer", "llama.cpp has no such step");
      }
    }
    if (!marks) refuse("normalizer", "spaces do not become SentencePiece's marks");
    return prefix;
  }

  // SentencePiece joins tokens by score, so a token gets its score from the place of its merges in
  // the list of merges.
  void add_sentencepiece() {
    const bool prefix = puts_space_first();
    read_merges();
    std::unordered_map<std::string, size_t> ids;
    for (size_t id = 0; id < tokens_.texts.size(); ++id) ids.emplace(tokens_.texts[id], id);
    scores_.assign(tokens_.texts.size(), 0.0);
    std::vector<bool> is_made(tokens_.texts.size(), false);
    std::optional<size_t> last;
    double score = 0;
    for (const auto& [left, right] : pairs_) {
      const auto found = ids.find(left + right);
      if (found == ids.end()) continue;  // a token whose marks were replaced by spaces
      const size_t id = found->second;
      if (last == id) continue;
      if (is_made[id] && tokens_.types[id] == kNormalToken)
        refuse("model.merges", fmt::format("`{:.60}` is made by merges of different rank, which "
                                           "SentencePiece's scores cannot say",
                                           tokens_.texts[id]));
      is_made[id] = true;
      last = id;
      scores_[id] = --score;
    }
    mark_bytes_and_unknown();
    metadata_.text("tokenizer.ggml.model", "llama");
    metadata_.text("tokenizer.ggml.pre", "default");
    metadata_.truth("tokenizer.ggml.add_space_prefix", prefix);
  }

  void mark_bytes_and_unknown() {
    for (size_t id = 0; id < tokens_.texts.size(); ++id) {
      if (is_byte(tokens_.texts[id]) && tokens_.types[id] == kNormalToken)
        tokens_.types[id] = kByteToken;
      if (is(model_, "unk_token", tokens_.texts[id])) tokens_.types[id] = kUnknownToken;
    }
  }

  // llama.cpp asks for scores and does not use them here.
  void add_pieces_with_merges() {
    if (puts_space_first()) refuse("normalizer", "llama.cpp puts no space before texts here");
    read_merges();
    list_merges("a piece");
    scores_.assign(tokens_.texts.size(), 0.0);
    mark_bytes_and_unknown();
    metadata_.text("tokenizer.ggml.model", "gemma4");
    metadata_.truth("tokenizer.ggml.add_space_prefix", false);
  }

  // True for "<0x0A>".
  static bool is_byte(const std::string& text) {
    return text.size() == 6 && text.starts_with("<0x") && text.ends_with('>') &&
           text.find_first_not_of("0123456789ABCDEF", 3) == 5;
  }

  std::optional<int64_t> named(const char* name) const {
    const Json& value = at(files_.tokenizer_config, name);
    const Json& text = value.is_object() ? at(value, "content") : value;
    if (!text.is_string()) return std::nullopt;
    const auto found =
        std::find(tokens_.texts.begin(), tokens_.texts.end(), text.get<std::string>());
    return found == tokens_.texts.end() ? std::nullopt
                                        : std::optional(found - tokens_.texts.begin());
  }

  void add_named_tokens() {
    bos_ = named("bos_token");
    eos_ = named("eos_token");
    if (!eos_ && !files_.ends.empty()) eos_ = files_.ends.front();
    std::vector<int64_t> others;
    for (const int64_t id : files_.ends)
      if (id != eos_ && id < vocab_size_) others.push_back(id);
    const auto put = [&](const char* key, std::optional<int64_t> id) {
      if (id) metadata_.number(fmt::format("tokenizer.ggml.{}_token_id", key), *id);
    };
    put("bos", bos_);
    put("eos", eos_);
    // The format has two keys for end tokens that llama.cpp does not recognise by their text.
    std::erase_if(others, [&](int64_t id) {
      return ends_by_its_text(tokens_.texts[static_cast<size_t>(id)]);
    });
    if (!others.empty()) put("eot", others[0]);
    if (others.size() > 1) put("eom", others[1]);
    for (size_t index = 2; index < others.size(); ++index)
      notices_.push_back(
          fmt::format("a GGUF file names three ends of texts; `{}` is not among them",
                      tokens_.texts[static_cast<size_t>(others[index])]));
    put("unknown", named("unk_token"));
    put("padding", named("pad_token"));
  }

  // The special token of a part of the template "single".
  std::optional<std::string> special_of(const Json& part) const {
    const Json& id = at(at(part, "SpecialToken"), "id");
    return id.is_string() ? std::optional(id.get<std::string>()) : std::nullopt;
  }

  void add_tokens_around() {
    bool bos = false, eos = false;
    for (const Json& step : steps_of(at(files_.tokenizer, "post_processor"), "processors")) {
      if (is(step, "type", "ByteLevel")) continue;
      if (!is(step, "type", "TemplateProcessing") || !at(step, "single").is_array())
        refuse("post_processor", "llama.cpp has no such step");
      bool before = true;
      for (const Json& part : at(step, "single")) {
        const auto special = special_of(part);
        if (!special) {
          before = false;
          continue;
        }
        const std::optional<int64_t> wanted = before ? bos_ : eos_;
        if (!wanted || tokens_.texts[static_cast<size_t>(*wanted)] != *special)
          refuse("post_processor",
                 fmt::format("it puts `{}` {} texts, where llama.cpp can put only the {} token",
                             *special, before ? "before" : "after", before ? "BOS" : "EOS"));
        (before ? bos : eos) = true;
      }
    }
    metadata_.truth("tokenizer.ggml.add_bos_token", bos);
    metadata_.truth("tokenizer.ggml.add_eos_token", eos);
  }

  const TokenizerFiles& files_;
  const Json& model_;
  int64_t vocab_size_;
  Metadata& metadata_;
  TokenLists tokens_;
  std::vector<double> scores_;
  std::vector<std::pair<std::string, std::string>> pairs_;
  std::vector<std::string> merges_;
  std::optional<int64_t> bos_, eos_;
  std::vector<std::string> notices_;
};

}  // namespace

std::vector<std::string> add_tokenizer(const TokenizerFiles& files, int64_t vocab_size,
                                       Metadata& metadata) {
  return Translation(files, vocab_size, metadata).run();
}

}  // namespace convoy::gguf
