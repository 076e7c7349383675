// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/io/gguf/tokenizer_text.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "convoy/core/base/error.h"
#include "convoy/core/base/utf8.h"
#include "convoy/core/io/gguf/pre_tokenizer.h"
#include "convoy/core/io/json_text.h"

namespace convoy::gguf {
namespace {

using io::Json;

constexpr const char* kModelKey = "tokenizer.ggml.model";
constexpr const char* kPreKey = "tokenizer.ggml.pre";
constexpr const char* kTokensKey = "tokenizer.ggml.tokens";
constexpr const char* kTypesKey = "tokenizer.ggml.token_type";
constexpr const char* kMergesKey = "tokenizer.ggml.merges";
constexpr const char* kScoresKey = "tokenizer.ggml.scores";
constexpr std::string_view kSpaceMark = "\xe2\x96\x81";  // SentencePiece's sign for a space

std::string json_text_of(std::string_view text) { return Json(std::string(text)).dump(); }

// Tokens with their types.
class Tokens {
 public:
  explicit Tokens(const File& file) {
    const List* const tokens = file.list(kTokensKey);
    if (tokens == nullptr || tokens->texts.empty()) file.fail(kTokensKey, "wanted a list of texts");
    texts_ = &tokens->texts;
    if (const List* const types = file.list(kTypesKey)) {
      if (types->integers.size() != texts_->size())
        file.fail(kTypesKey,
                  fmt::format("{} types of {} tokens", types->integers.size(), texts_->size()));
      types_ = &types->integers;
    }
    ids_.reserve(texts_->size());
    for (size_t id = 0; id < texts_->size(); ++id) {
      const std::string& text = (*texts_)[id];
      if (!is_listed(id)) continue;
      if (!ids_.emplace(text, id).second)
        file.fail(kTokensKey,
                  fmt::format("tokens {} and {} are both `{:.100}`", ids_.at(text), id, text));
    }
  }

  size_t size() const { return texts_->size(); }
  const std::string& text(size_t id) const { return (*texts_)[id]; }
  int64_t type(size_t id) const { return types_ == nullptr ? kNormalToken : (*types_)[id]; }
  // False for placeholder tokens that only fill the vocabulary up.
  bool is_listed(size_t id) const {
    return !text(id).empty() && !(type(id) == kUnusedToken && text(id).starts_with("[PAD"));
  }
  bool is_added(size_t id) const { return type(id) == kControlToken || type(id) == kUserToken; }
  std::optional<size_t> find(std::string_view text) const {
    const auto found = ids_.find(text);
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }

  std::string vocabulary_json() const {
    std::string json = "{";
    for (size_t id = 0; id < size(); ++id) {
      if (!is_listed(id)) continue;
      if (json.size() > 1) json += ',';
      json += fmt::format("{}:{}", json_text_of(text(id)), id);
    }
    return json + "}";
  }

  Json added_json() const {
    Json added = Json::array();
    for (size_t id = 0; id < size(); ++id)
      if (is_listed(id) && (is_added(id) || type(id) == kUnknownToken))
        added.push_back({{"id", id},
                         {"content", text(id)},
                         {"single_word", false},
                         {"lstrip", false},
                         {"rstrip", false},
                         {"normalized", false},
                         {"special", type(id) != kUserToken}});
    return added;
  }

 private:
  const std::vector<std::string>* texts_ = nullptr;
  const std::vector<int64_t>* types_ = nullptr;
  std::unordered_map<std::string_view, size_t> ids_;
};

struct Merges {
  std::string json = "[";
  void add(std::string_view left, std::string_view right) {
    if (json.size() > 1) json += ',';
    json += fmt::format("[{},{}]", json_text_of(left), json_text_of(right));
  }
  std::string take() { return std::move(json) + "]"; }
};

// Reads merges of the form "left right". The left token may begin with a space.
std::string listed_merges(const File& file) {
  const List* const list = file.list(kMergesKey);
  if (list == nullptr) file.fail(kMergesKey, "is missing");
  Merges merges;
  for (size_t index = 0; index < list->texts.size(); ++index) {
    const std::string& pair = list->texts[index];
    const size_t space = pair.find(' ', 1);
    if (space == std::string::npos || space + 1 == pair.size())
      file.fail(kMergesKey, fmt::format("[{}]: wanted two tokens, found `{:.100}`", index, pair));
    merges.add(std::string_view(pair).substr(0, space), std::string_view(pair).substr(space + 1));
  }
  return merges.take();
}

// SentencePiece joins the two neighbours whose joined token has the best score. So the merges are
// all ways to join two tokens to a third, in the order of the third token's score. transformers
// makes merges of a tokenizer.model in the same way.
std::string merges_of_scores(const File& file, const Tokens& tokens) {
  const List* const scores = file.list(kScoresKey);
  if (scores == nullptr || scores->reals.size() != tokens.size())
    file.fail(kScoresKey, fmt::format("wanted a score for each of {} tokens", tokens.size()));
  const auto joins = [&](size_t id) {
    return tokens.is_listed(id) &&
           (tokens.type(id) == kNormalToken || tokens.type(id) == kUserToken);
  };
  struct Found {
    double score;
    size_t id, left, right;
  };
  std::vector<Found> found;
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (!joins(id)) continue;
    const std::string_view text = tokens.text(id);
    for (size_t cut = 1; cut < text.size(); ++cut) {
      if (continues_character(text[cut])) continue;
      const auto left = tokens.find(text.substr(0, cut)), right = tokens.find(text.substr(cut));
      if (left && right && joins(*left) && joins(*right))
        found.push_back({scores->reals[id], id, *left, *right});
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    return std::tuple(-a.score, a.id, a.left, a.right) <
           std::tuple(-b.score, b.id, b.left, b.right);
  });
  Merges merges;
  for (const Found& merge : found) merges.add(tokens.text(merge.left), tokens.text(merge.right));
  return merges.take();
}

// Tells which tokens are put before and after a text.
struct Ends {
  bool bos = false;
  bool eos = false;
};
Ends ends_around(const File& file, bool bos_by_default) {
  return {file.truth("tokenizer.ggml.add_bos_token").value_or(bos_by_default),
          file.truth("tokenizer.ggml.add_eos_token").value_or(false)};
}

Json post_processor_json(const File& file, const Tokens& tokens, const Ends& ends) {
  Json single = Json::array(), pair = Json::array(), special = Json::object();
  const auto add = [&](const char* key) {
    const auto id = token_id(file, key);
    if (!id) file.fail(key, "is missing, and the tokenizer puts this token around texts");
    const std::string& text = tokens.text(static_cast<size_t>(*id));
    single.push_back({{"SpecialToken", {{"id", text}, {"type_id", 0}}}});
    pair.push_back({{"SpecialToken", {{"id", text}, {"type_id", 1}}}});
    special[text] = {{"id", text}, {"ids", {*id}}, {"tokens", {text}}};
  };
  if (ends.bos) add("tokenizer.ggml.bos_token_id");
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  pair.push_back({{"Sequence", {{"id", "B"}, {"type_id", 1}}}});
  if (ends.eos) add("tokenizer.ggml.eos_token_id");
  Json both = single;
  for (const Json& part : pair) both.push_back(part);
  return {{"type", "TemplateProcessing"},
          {"single", single},
          {"pair", both},
          {"special_tokens", special}};
}

Json byte_level(bool trims) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", trims},
          {"use_regex", false}};
}

struct Parts {
  Json normalizer, pre_tokenizer, post_processor, decoder;
  std::string unknown = "null";
  bool byte_fallback = false;
  bool ignores_merges = false;
  std::string merges;
};

std::string whole_json(const Tokens& tokens, const Parts& parts) {
  return fmt::format(
      R"({{"version":"1.0","truncation":null,"padding":null,"added_tokens":{},"normalizer":{},)"
      R"("pre_tokenizer":{},"post_processor":{},"decoder":{},"model":{{"type":"BPE","dropout":null,)"
      R"("unk_token":{},"continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":{},)"
      R"("byte_fallback":{},"ignore_merges":{},"vocab":{},"merges":{}}}}})",
      tokens.added_json().dump(), parts.normalizer.dump(), parts.pre_tokenizer.dump(),
      parts.post_processor.dump(), parts.decoder.dump(), parts.unknown, parts.byte_fallback,
      parts.byte_fallback, parts.ignores_merges, tokens.vocabulary_json(), parts.merges);
}

const PreTokenizer& pre_tokenizer_of(const File& file) {
  const std::string name = file.text(kPreKey).value_or("default");
  if (const PreTokenizer* const found = find_pre_tokenizer(name)) return *found;
  std::vector<std::string_view> known;
  for (const PreTokenizer& entry : pre_tokenizers()) known.push_back(entry.names.front());
  throw DataError(fmt::format("{}: `{:.100}` is not known; there are {} and their like", kPreKey,
                              name, fmt::join(known, ", ")),
                  {.file = file.path().string(),
                   .key = kPreKey,
                   .hint = "take the model in Hugging Face layout, where tokenizer.json says how "
                           "texts are cut"});
}

std::string byte_level_text(const File& file) {
  const Tokens tokens(file);
  const PreTokenizer& pre = pre_tokenizer_of(file);
  const Ends ends = ends_around(file, pre.adds_bos);
  return whole_json(
      tokens, {.normalizer = pre.normalizes ? Json{{"type", "NFC"}} : Json(),
               .pre_tokenizer = pre_tokenizer_json(pre),
               .post_processor = ends.bos || ends.eos ? post_processor_json(file, tokens, ends)
                                                      : byte_level(false),
               .decoder = byte_level(true),
               .ignores_merges = pre.ignores_merges,
               .merges = listed_merges(file)});
}

// `prefix`: a space is put before the first word. `merges`: how pieces are joined.
std::string pieces_text(const File& file, const Tokens& tokens, bool prefix, std::string merges) {
  const std::string mark(kSpaceMark);
  Json steps = Json::array();
  if (prefix) steps.push_back({{"type", "Prepend"}, {"prepend", mark}});
  steps.push_back({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", mark}});
  Json decoders =
      Json::array({{{"type", "Replace"}, {"pattern", {{"String", mark}}}, {"content", " "}},
                   {{"type", "ByteFallback"}},
                   {{"type", "Fuse"}}});
  if (prefix) decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  Parts parts{.normalizer = {{"type", "Sequence"}, {"normalizers", steps}},
              .pre_tokenizer = {},
              .post_processor = {},
              .decoder = {{"type", "Sequence"}, {"decoders", decoders}},
              .byte_fallback = true,
              .merges = std::move(merges)};
  if (const Ends ends = ends_around(file, true); ends.bos || ends.eos)
    parts.post_processor = post_processor_json(file, tokens, ends);
  for (size_t id = 0; id < tokens.size(); ++id)
    if (tokens.type(id) == kUnknownToken) parts.unknown = json_text_of(tokens.text(id));
  return whole_json(tokens, parts);
}

std::string sentencepiece_text(const File& file) {
  const Tokens tokens(file);
  return pieces_text(file, tokens, file.truth("tokenizer.ggml.add_space_prefix").value_or(true),
                     merges_of_scores(file, tokens));
}

// Gemma 4: pieces as SentencePiece has them, joined by a list of merges.
std::string pieces_with_merges_text(const File& file) {
  return pieces_text(file, Tokens(file), /*prefix=*/false, listed_merges(file));
}

// The text of a token that a file names by its id.
std::optional<std::string> named_token(const File& file, const char* key) {
  const auto id = token_id(file, key);
  if (!id) return std::nullopt;
  const std::string& text = file.list(kTokensKey)->texts[static_cast<size_t>(*id)];
  return text.empty() ? std::nullopt : std::optional(text);
}

}  // namespace

std::optional<int64_t> token_id(const File& file, const std::string& key) {
  const List* const tokens = file.list(kTokensKey);
  if (tokens == nullptr || tokens->texts.empty()) file.fail(kTokensKey, "wanted a list of texts");
  const auto last = static_cast<int64_t>(tokens->texts.size()) - 1;
  // For a token that it does not have, a file may hold an id beyond the last.
  const auto id = file.integer(key, INT64_MIN, INT64_MAX);
  return id && *id >= 0 && *id <= last ? id : std::nullopt;
}

constexpr const char* kToolResponse = "<|tool_response>";

bool ends_by_its_text(const std::string& token) {
  constexpr std::array kTexts = {"<|eot_id|>",
                                 "<|im_end|>",
                                 "<|end|>",
                                 "<end_of_turn>",
                                 "<|endoftext|>",
                                 "<|eom_id|>",
                                 "<EOT>",
                                 "_<EOT>",
                                 "<|end_of_text|>",
                                 "<end_of_utterance>",
                                 "</s>",
                                 "<eos>",
                                 "<turn|>",
                                 kToolResponse,
                                 "<\xef\xbd\x9c"
                                 "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>"};
  return std::find(kTexts.begin(), kTexts.end(), token) != kTexts.end();
}

std::vector<int64_t> end_ids(const File& file) {
  std::vector<int64_t> ids;
  const auto add = [&ids](int64_t id) {
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  };
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                          "tokenizer.ggml.eom_token_id"})
    if (const auto id = token_id(file, key)) add(*id);
  const std::vector<std::string>& tokens = file.list(kTokensKey)->texts;
  // Gemma 4 has </s> as a word of texts.
  const bool has_word = std::find(tokens.begin(), tokens.end(), kToolResponse) != tokens.end();
  for (size_t id = 0; id < tokens.size(); ++id)
    if (ends_by_its_text(tokens[id]) && !(has_word && tokens[id] == "</s>"))
      add(static_cast<int64_t>(id));
  return ids;
}

std::string tokenizer_json_text(const File& file) {
  const std::string model = file.require_text(kModelKey);
  if (model == "gpt2") return byte_level_text(file);
  if (model == "llama") return sentencepiece_text(file);
  if (model == "gemma4") return pieces_with_merges_text(file);
  throw DataError(
      fmt::format("{}: `{:.100}` is not supported; gpt2, llama and gemma4 are", kModelKey, model),
      {.file = file.path().string(),
       .key = kModelKey,
       .hint = "take the model in Hugging Face layout"});
}

std::string tokenizer_config_text(const File& file) {
  Json config = {{"clean_up_tokenization_spaces", false},
                 {"tokenizer_class", "PreTrainedTokenizerFast"}};
  constexpr std::array<std::pair<const char*, const char*>, 4> kNamed = {
      {{"bos_token", "tokenizer.ggml.bos_token_id"},
       {"eos_token", "tokenizer.ggml.eos_token_id"},
       {"unk_token", "tokenizer.ggml.unknown_token_id"},
       {"pad_token", "tokenizer.ggml.padding_token_id"}}};
  for (const auto& [name, key] : kNamed)
    if (const auto text = named_token(file, key)) config[name] = *text;
  if (const auto chat_template = file.text("tokenizer.chat_template"))
    config["chat_template"] = *chat_template;
  return config.dump(2) + "\n";
}

std::vector<std::string> tokenizer_notices(const File& file) {
  std::vector<std::string> notices;
  if (file.text(kModelKey) == "gpt2" && !file.text(kPreKey))
    notices.push_back(fmt::format(
        "{}: the file does not say how texts are cut ({}), as files made before May 2024; they are "
        "cut as llama.cpp cuts them then, which may not be as in training",
        file.path().string(), kPreKey));
  return notices;
}

}  // namespace convoy::gguf
