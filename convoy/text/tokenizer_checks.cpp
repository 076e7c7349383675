// SPDX-License-Identifier: Apache-2.0
#include "convoy/text/tokenizer_checks.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "convoy/base/error.h"

namespace convoy::text {
namespace {

using nlohmann::json;
using Vocabulary = std::unordered_map<std::string_view, int64_t>;

constexpr int kMaxDepth = 256;
// Gaps are legal (padded vocabularies); memory is allocated by the largest id all the same.
constexpr int64_t kMaxGap = 1 << 16;

class Checker {
 public:
  Checker(const json& root, const std::filesystem::path& file) : root_(root), file_(file) {}

  void run();

 private:
  [[noreturn]] void fail(const std::string& path, const std::string& message) const {
    throw DataError(fmt::format("{}: {}", path, message), {.file = file_.string(), .key = path});
  }
  void read_vocabulary();
  void read_scored_vocabulary();
  void read_added_tokens();
  void check_density() const;
  void check_merges() const;
  void check_unknown_token() const;
  void check_complete() const;
  int64_t checked_id(const json& value, const std::string& path) const;
  void check_merge(const json& merge, size_t index, std::string_view prefix) const;
  bool uses_bytes(const json& component) const;

  const json& root_;
  const std::filesystem::path& file_;
  const json* model_ = nullptr;
  std::string type_;
  Vocabulary vocabulary_;
  std::unordered_map<int64_t, std::string_view> by_id_;
};

int64_t Checker::checked_id(const json& value, const std::string& path) const {
  // Floats, negative numbers and what does not fit 64 bits all fail the first test.
  if (!value.is_number_unsigned() || value.get<uint64_t>() > static_cast<uint64_t>(kMaxTokenId))
    fail(path,
         fmt::format("wanted an id from 0 to {}, found {}", kMaxTokenId,
                     value.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 40)));
  return value.get<int64_t>();
}

void Checker::read_vocabulary() {
  const auto vocab = model_->find("vocab");
  if (vocab == model_->end() || !vocab->is_object())
    fail("model.vocab", "wanted an object of token: id");
  for (const auto& [token, value] : vocab->items()) {
    const int64_t id = checked_id(value, fmt::format("model.vocab[`{}`]", token));
    const auto [other, fresh] = by_id_.emplace(id, token);
    if (!fresh)
      fail(fmt::format("model.vocab[`{}`]", token),
           fmt::format("id {} is already that of `{}`", id, other->second));
    vocabulary_.emplace(token, id);
  }
  if (vocabulary_.empty()) fail("model.vocab", "the vocabulary is empty");
}

void Checker::read_scored_vocabulary() {
  const auto vocab = model_->find("vocab");
  if (vocab == model_->end() || !vocab->is_array() || vocab->empty())
    fail("model.vocab", "wanted a list of [token, score]");
  if (vocab->size() > static_cast<size_t>(kMaxTokenId)) fail("model.vocab", "too many tokens");
  for (size_t id = 0; id < vocab->size(); ++id) {
    const json& entry = (*vocab)[id];
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number())
      fail(fmt::format("model.vocab[{}]", id), "wanted [token, score]");
    const std::string_view token = entry[0].get_ref<const std::string&>();
    vocabulary_.emplace(token, static_cast<int64_t>(id));
    by_id_.emplace(static_cast<int64_t>(id), token);
  }
}

void Checker::read_added_tokens() {
  const auto added = root_.find("added_tokens");
  if (added == root_.end() || added->is_null()) return;
  if (!added->is_array()) fail("added_tokens", "wanted a list");
  for (size_t index = 0; index < added->size(); ++index) {
    const json& token = (*added)[index];
    const std::string path = fmt::format("added_tokens[{}]", index);
    if (!token.is_object() || !token.contains("id") || !token.contains("content"))
      fail(path, "wanted an object with id and content");
    if (!token["content"].is_string() || token["content"].get_ref<const std::string&>().empty())
      fail(path + ".content", "wanted a text that is not empty");
    const std::string_view content = token["content"].get_ref<const std::string&>();
    const int64_t id = checked_id(token["id"], path + ".id");
    if (const auto known = vocabulary_.find(content); known != vocabulary_.end()) {
      if (known->second != id)
        fail(path + ".id", fmt::format("`{}` has id {} in the vocabulary, but {} here", content,
                                       known->second, id));
      continue;
    }
    const auto [other, fresh] = by_id_.emplace(id, content);
    if (!fresh) fail(path + ".id", fmt::format("id {} is already that of `{}`", id, other->second));
    vocabulary_.emplace(content, id);
  }
}

void Checker::check_density() const {
  int64_t largest = 0;
  for (const auto& [id, token] : by_id_) largest = std::max(largest, id);
  const auto count = static_cast<int64_t>(by_id_.size());
  if (largest >= 2 * count + kMaxGap)
    fail("model.vocab",
         fmt::format("the largest id is {}, but there are only {} tokens", largest, count));
}

void Checker::check_merge(const json& merge, size_t index, std::string_view prefix) const {
  const auto path = [index] { return fmt::format("model.merges[{}]", index); };
  std::string_view left;
  std::string_view right;
  if (merge.is_string()) {
    const std::string_view text = merge.get_ref<const std::string&>();
    const size_t space = text.find(' ');
    if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos)
      fail(path(), fmt::format("wanted two tokens with one space between, found `{}`", text));
    left = text.substr(0, space);
    right = text.substr(space + 1);
  } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
             merge[1].is_string()) {
    left = merge[0].get_ref<const std::string&>();
    right = merge[1].get_ref<const std::string&>();
  } else {
    fail(path(), "wanted two tokens");
  }
  for (const std::string_view part : {left, right})
    if (!vocabulary_.contains(part))
      fail(path(), fmt::format("`{}` is not in the vocabulary", part));
  if (right.size() < prefix.size())
    fail(path(), fmt::format("`{}` lacks the prefix `{}`", right, prefix));
  const std::string merged = std::string(left) + std::string(right.substr(prefix.size()));
  if (!vocabulary_.contains(merged))
    fail(path(), fmt::format("the merged token `{}` is not in the vocabulary", merged));
}

void Checker::check_merges() const {
  const auto merges = model_->find("merges");
  if (merges == model_->end() || !merges->is_array()) fail("model.merges", "wanted a list");
  if (merges->size() > static_cast<size_t>(kMaxTokenId)) fail("model.merges", "too many merges");
  const auto prefix = model_->find("continuing_subword_prefix");
  const std::string prefix_text =
      prefix != model_->end() && prefix->is_string() ? prefix->get<std::string>() : "";
  for (size_t index = 0; index < merges->size(); ++index)
    check_merge((*merges)[index], index, prefix_text);
}

void Checker::check_unknown_token() const {
  if (type_ == "Unigram") {
    const auto unknown = model_->find("unk_id");
    if (unknown == model_->end() || unknown->is_null())
      fail("model.unk_id", "wanted the id of the token for unknown letters");
    const int64_t id = checked_id(*unknown, "model.unk_id");
    if (id >= static_cast<int64_t>((*model_)["vocab"].size()))
      fail("model.unk_id", fmt::format("id {} is not in the vocabulary", id));
    return;
  }
  const auto unknown = model_->find("unk_token");
  const bool present = unknown != model_->end() && !unknown->is_null();
  if (present && !unknown->is_string()) fail("model.unk_token", "wanted a token or null");
  if (present && !vocabulary_.contains(unknown->get_ref<const std::string&>()))
    fail("model.unk_token",
         fmt::format("`{}` is not in the vocabulary", unknown->get_ref<const std::string&>()));
  if (!present && type_ != "BPE") fail("model.unk_token", "wanted the token for unknown words");
}

bool Checker::uses_bytes(const json& component) const {
  if (!component.is_object()) return false;
  const auto type = component.find("type");
  if (type != component.end() && *type == "ByteLevel") return true;
  for (const char* key : {"pretokenizers", "normalizers"}) {
    const auto parts = component.find(key);
    if (parts == component.end() || !parts->is_array()) continue;
    for (const json& part : *parts)
      if (uses_bytes(part)) return true;
  }
  return false;
}

std::string utf8_of(uint32_t letter) {
  if (letter < 0x80) return {static_cast<char>(letter)};
  return {static_cast<char>(0xC0 | (letter >> 6)), static_cast<char>(0x80 | (letter & 0x3F))};
}

// The letters that stand for bytes in GPT-2's scheme: printable ones for themselves, the others from U+0100 on.
std::vector<std::string> byte_letters() {
  std::vector<std::string> letters;
  uint32_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool itself =
        (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    letters.push_back(utf8_of(itself ? byte : next++));
  }
  return letters;
}

// Without these a BPE model would drop what it cannot spell, in silence.
void Checker::check_complete() const {
  if (type_ != "BPE") return;
  const auto unknown = model_->find("unk_token");
  const bool has_unknown = unknown != model_->end() && unknown->is_string();
  const bool fallback = model_->value("byte_fallback", json(false)) == json(true);
  const auto part = [this](const char* key) { return root_.value(key, json()); };
  const bool bytes = uses_bytes(part("pre_tokenizer")) || uses_bytes(part("normalizer"));
  if (has_unknown) return;
  if (bytes) {
    for (const std::string& letter : byte_letters())
      if (!vocabulary_.contains(letter))
        fail("model.vocab",
             fmt::format("byte-level, but `{}` is missing and unk_token is not set", letter));
  } else if (fallback) {
    for (int byte = 0; byte < 256; ++byte)
      if (!vocabulary_.contains(fmt::format("<0x{:02X}>", byte)))
        fail(
            "model.vocab",
            fmt::format("byte_fallback, but <0x{:02X}> is missing and unk_token is not set", byte));
  } else {
    fail("model.unk_token",
         "neither byte-level nor byte_fallback, so a token for unknown letters is needed");
  }
}

void Checker::run() {
  if (!root_.is_object()) fail("$", "wanted a JSON object");
  const auto model = root_.find("model");
  if (model == root_.end() || !model->is_object()) fail("model", "wanted an object");
  model_ = &*model;
  const auto type = model->find("type");
  static constexpr std::array<std::string_view, 4> kTypes = {"BPE", "Unigram", "WordPiece",
                                                             "WordLevel"};
  if (type == model->end() || !type->is_string() ||
      std::find(kTypes.begin(), kTypes.end(), type->get_ref<const std::string&>()) == kTypes.end())
    fail("model.type", "wanted BPE, Unigram, WordPiece or WordLevel");
  type_ = type->get<std::string>();
  if (type_ == "Unigram")
    read_scored_vocabulary();
  else
    read_vocabulary();
  read_added_tokens();
  check_density();
  check_unknown_token();
  if (type_ == "BPE") check_merges();
  check_complete();
}

void check_depth(std::string_view text, const std::filesystem::path& file) {
  int depth = 0;
  int64_t line = 1;
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    if (letter == '\n') ++line;
    if (in_string) {
      if (letter == '\\') ++at;
      if (letter == '"') in_string = false;
    } else if (letter == '"') {
      in_string = true;
    } else if (letter == '{' || letter == '[') {
      if (++depth > kMaxDepth)
        throw DataError(fmt::format("JSON is nested more than {} levels deep", kMaxDepth),
                        {.file = file.string(), .line = line});
    } else if (letter == '}' || letter == ']') {
      --depth;
    }
  }
}

template <class Json>
Json parse(std::string_view text, const std::filesystem::path& file) {
  check_depth(text, file);
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("not valid JSON: {}", error.what()), {.file = file.string()});
  }
}

}  // namespace

json parse_checked_json(std::string_view text, const std::filesystem::path& file) {
  return parse<json>(text, file);
}

nlohmann::ordered_json parse_checked_ordered_json(std::string_view text,
                                                  const std::filesystem::path& file) {
  return parse<nlohmann::ordered_json>(text, file);
}

void check_tokenizer_json(const json& tokenizer, const std::filesystem::path& file) {
  Checker(tokenizer, file).run();
}

}  // namespace convoy::text
