// SPDX-License-Identifier: Apache-2.0
//
// The expressions come from the models' tokenizer.json files. llama.cpp's own expressions
// (llama-vocab.cpp) match the same text in another spelling.
#include "convoy/core/io/gguf/pre_tokenizer.h"

#include <algorithm>

namespace convoy::gguf {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kDigit = R"re(\p{N})re";
constexpr std::string_view kDigits = R"re(\p{N}+)re";
// The expression by which ByteLevel with use_regex cuts.
constexpr std::string_view kGpt2 =
    R"re('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)re";
constexpr std::string_view kLlama3 =
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";
constexpr std::string_view kQwen2 =
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";
// Marks belong to the letters before them.
constexpr std::string_view kQwen35 =
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";
constexpr std::string_view kTekken =
    R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";
constexpr std::string_view kGpt4o =
    R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";
constexpr std::string_view kDeepSeek3 =
    R"re([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";
// The line breaks in it are the characters themselves, as in Seed-Coder's tokenizer.json.
constexpr std::string_view kSeedCoder =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\r\n]+|"
    "\\s*[\r\n]+|\\s+(?!\\S)|\\s+";

const std::vector<PreTokenizer>& table() {
  static const std::vector<PreTokenizer> kTable = {
      {.names = {"gpt-2", "phi-2", "jina-es", "jina-de", "gigachat", "jina-v2-es", "jina-v2-de",
                 "a.x-4.0", "mellum", "modern-bert", "mpt", "olmo", "jais", "trillion",
                 "granite-docling"},
       .cuts = {kGpt2}},
      {.names = {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b",
                 "mellum2"},
       .cuts = {kDigit, kGpt2}},
      {.names = {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0",
                 "lfm2"},
       .cuts = {kLlama3},
       .ignores_merges = true,
       .adds_bos = true},
      {.names = {"smaug-bpe", "dbrx", "chatglm-bpe"}, .cuts = {kLlama3}},
      {.names = {"glm4", "glm5"}, .cuts = {kLlama3}, .ignores_merges = true},
      {.names = {"seed-coder"}, .cuts = {kSeedCoder}},
      {.names = {"qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2"},
       .cuts = {kQwen2},
       .normalizes = true},
      {.names = {"qwen35"}, .cuts = {kQwen35}, .normalizes = true},
      {.names = {"stablelm2", "hunyuan", "solar-open", "megrez"}, .cuts = {kQwen2}},
      {.names = {"tekken"}, .cuts = {kTekken}, .ignores_merges = true, .adds_bos = true},
      {.names = {"gpt-4o", "llama4", "kanana2"}, .cuts = {kGpt4o}},
      {.names = {"deepseek-v3", "hunyuan-dense"},
       .cuts = {R"re(\p{N}{1,3})re", R"re([一-龥぀-ゟ゠-ヿ]+)re", kDeepSeek3}},
      {.names = {"deepseek-coder"},
       .cuts = {R"re([\r\n])re", R"re(\s?\p{L}+)re", R"re(\s?\p{P}+)re",
                R"re([一-龥ࠀ-一가-퟿]+)re", kDigit}},
      {.names = {"falcon"},
       .cuts = {R"re([\p{P}\$\+<=>\^~\|`]+)re", kGpt2, R"re([0-9][0-9][0-9])re"}},
      {.names = {"default"},
       .cuts = {R"re([\p{P}\$\+<=>\^~\|]+)re", kGpt2, kDigits, R"re([0-9][0-9][0-9])re"}},
  };
  return kTable;
}

ordered_json split_json(std::string_view cut) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", std::string(cut)}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}

ordered_json byte_level_json(bool cuts) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", cuts}};
}

bool flag(const ordered_json& json, const char* key, bool otherwise) {
  const auto found = json.find(key);
  return found != json.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

// Replaces the other spelling of the contractions by the spelling that ignores case.
std::string usual_spelling(std::string cut) {
  constexpr std::string_view kOther = "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])";
  constexpr std::string_view kUsual = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
  for (size_t at = 0; (at = cut.find(kOther, at)) != std::string::npos; at += kUsual.size())
    cut.replace(at, kOther.size(), kUsual);
  return cut;
}

// The expression by which a step cuts. nullopt: a step of another kind. "": the step only maps
// bytes.
std::optional<std::string> cut_of(const ordered_json& step) {
  if (!step.is_object() || !step.contains("type") || !step["type"].is_string()) return std::nullopt;
  const std::string type = step["type"];
  if (type == "Digits")
    return std::string(flag(step, "individual_digits", false) ? kDigit : kDigits);
  if (type == "ByteLevel") {
    if (flag(step, "add_prefix_space", true)) return std::nullopt;
    return flag(step, "use_regex", true) ? std::string(kGpt2) : "";
  }
  if (type != "Split" || flag(step, "invert", false)) return std::nullopt;
  const auto behavior = step.find("behavior");
  const auto pattern = step.find("pattern");
  if (behavior == step.end() || *behavior != "Isolated" || pattern == step.end() ||
      !pattern->is_object() || !pattern->contains("Regex") || !(*pattern)["Regex"].is_string())
    return std::nullopt;
  return usual_spelling((*pattern)["Regex"].get<std::string>());
}

// The expressions of all steps of a byte-level pre-tokenizer; nullopt when a step is of another
// kind.
std::optional<std::vector<std::string>> cuts_of(const ordered_json& json) {
  std::vector<ordered_json> steps = {json};
  if (json.is_object() && json.value("type", ordered_json()) == "Sequence") {
    const auto list = json.find("pretokenizers");
    if (list == json.end() || !list->is_array()) return std::nullopt;
    steps.clear();
    for (const ordered_json& step : *list) steps.push_back(step);
  }
  std::vector<std::string> cuts;
  bool maps_bytes = false;
  for (const ordered_json& step : steps) {
    // A step after the mapping of bytes would no longer see letters.
    if (maps_bytes) return std::nullopt;
    std::optional<std::string> cut = cut_of(step);
    if (!cut) return std::nullopt;
    maps_bytes = step["type"] == "ByteLevel";
    if (!cut->empty()) cuts.push_back(*std::move(cut));
  }
  return maps_bytes ? std::optional(std::move(cuts)) : std::nullopt;
}

}  // namespace

std::span<const PreTokenizer> pre_tokenizers() { return table(); }

const PreTokenizer* find_pre_tokenizer(std::string_view name) {
  for (const PreTokenizer& entry : table())
    if (std::find(entry.names.begin(), entry.names.end(), name) != entry.names.end()) return &entry;
  return nullptr;
}

ordered_json pre_tokenizer_json(const PreTokenizer& pre_tokenizer) {
  ordered_json steps = ordered_json::array();
  std::vector<std::string_view> cuts = pre_tokenizer.cuts;
  const bool last_is_usual = cuts.back() == kGpt2;
  if (last_is_usual) cuts.pop_back();
  for (const std::string_view cut : cuts)
    steps.push_back(cut == kDigit || cut == kDigits
                        ? ordered_json{{"type", "Digits"}, {"individual_digits", cut == kDigit}}
                        : split_json(cut));
  steps.push_back(byte_level_json(last_is_usual));
  if (steps.size() == 1) return steps[0];
  return {{"type", "Sequence"}, {"pretokenizers", steps}};
}

const PreTokenizer* matching_pre_tokenizer(const ordered_json& json, bool ignores_merges) {
  const auto cuts = cuts_of(json);
  if (!cuts) return nullptr;
  for (const PreTokenizer& entry : table())
    if (entry.ignores_merges == ignores_merges &&
        std::equal(entry.cuts.begin(), entry.cuts.end(), cuts->begin(), cuts->end()))
      return &entry;
  return nullptr;
}

}  // namespace convoy::gguf
