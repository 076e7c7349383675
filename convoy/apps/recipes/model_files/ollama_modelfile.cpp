// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/model_files/ollama_modelfile.h"

#include <fmt/format.h>

#include <algorithm>

#include "convoy/core/base/error.h"
#include "convoy/data/text/tokenizer.h"
#include "convoy/model/models/gguf_export.h"

namespace convoy::recipes {
namespace {

using nlohmann::ordered_json;

// Placeholder contents that occur in no template.
constexpr const char* kSystem = "SYSTEM-1f6e";
constexpr const char* kUser = "USER-1f6e";
constexpr const char* kAnswer = "ANSWER-1f6e";
constexpr const char* kUserAgain = "AGAIN-1f6e";

ordered_json turn(const char* role, const std::string& content) {
  return {{"role", role}, {"content", content}};
}

// Splits `text` at the contents, which must occur in this order. Returns the texts around them: one
// more than there are contents.
std::optional<std::vector<std::string>> around(const std::string& text,
                                               const std::vector<std::string>& contents) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (const std::string& content : contents) {
    const size_t found = text.find(content, begin);
    if (found == std::string::npos) return std::nullopt;
    parts.push_back(text.substr(begin, found - begin));
    begin = found + content.size();
  }
  parts.push_back(text.substr(begin));
  return parts;
}

bool take_start(std::string& text, const std::string& start) {
  if (!text.starts_with(start)) return false;
  text.erase(0, start.size());
  return true;
}

bool take_end(std::string& text, const std::string& end) {
  if (!text.ends_with(end)) return false;
  text.erase(text.size() - end.size());
  return true;
}

class TurnReader {
 public:
  TurnReader(const text::ChatTemplate& chat_template, const std::string& bos)
      : template_(chat_template), bos_(bos) {}

  std::optional<TurnTexts> read() {
    TurnTexts texts;
    const std::vector<std::string> contents = {kUser, kAnswer, kUserAgain};
    const ordered_json turns = {turn("user", kUser), turn("assistant", kAnswer),
                                turn("user", kUserAgain)};
    const auto whole = around(rendered(turns, false), contents);
    const auto asked = around(rendered(turns, true), contents);
    const auto answered = around(rendered({turn("user", kUser), turn("assistant", kAnswer)}, false),
                                 {kUser, kAnswer});
    if (!whole || !asked || !answered) return std::nullopt;
    texts.user_after = whole->at(3);
    texts.assistant_after = answered->at(2);
    texts.assistant_before = whole->at(1);
    texts.user_before = whole->at(2);
    texts.prompt = asked->at(3);
    texts.start = whole->at(0);
    if (!take_start(texts.assistant_before, texts.user_after) ||
        !take_start(texts.user_before, texts.assistant_after) ||
        !take_start(texts.prompt, texts.user_after) || !take_end(texts.start, texts.user_before))
      return std::nullopt;
    read_system(texts);
    return agrees(texts) ? std::optional(texts) : std::nullopt;
  }

 private:
  // Renders without the tokenizer's BOS, which llama.cpp adds itself.
  std::string rendered(const ordered_json& messages, bool prompt) const {
    std::string text = template_.render(messages, {}, prompt).text;
    if (!bos_.empty()) take_start(text, bos_);
    return text;
  }

  void read_system(TurnTexts& texts) const {
    try {
      const auto parts =
          around(rendered({turn("system", kSystem), turn("user", kUser)}, false), {kSystem, kUser});
      if (!parts) return;
      texts.system_before = parts->at(0);
      texts.system_after = parts->at(1);
      if (!take_end(texts.system_after, texts.user_before))
        texts.system_before = texts.system_after = "";
    } catch (const DataError&) {  // the template takes no system turns
    }
  }

  bool agrees(const TurnTexts& texts) const {
    std::vector<ordered_json> chats = {
        {turn("user", "a b")},
        {turn("user", "One?"), turn("assistant", "Two."), turn("user", "Three?")}};
    if (!texts.system_after.empty())
      chats.push_back({turn("system", "Be brief."), turn("user", "One?"), turn("assistant", "Two."),
                       turn("user", "Three?"), turn("assistant", "Four."), turn("user", "Five?")});
    return std::all_of(chats.begin(), chats.end(), [&](const ordered_json& chat) {
      return texts.render(chat) == rendered(chat, true);
    });
  }

  const text::ChatTemplate& template_;
  std::string bos_;
};

// Escapes double braces for Go's templates. Inside """ ... """ no other text needs escaping.
std::string go_text(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text.compare(at, 2, "{{") != 0) {
      out += text[at];
      continue;
    }
    out += "{{ \"{{\" }}";
    ++at;
  }
  return out;
}

// Pairs of a PARAMETER in a Modelfile and a key of generation_config.json.
constexpr std::pair<const char*, const char*> kSampling[] = {
    {"temperature", "temperature"},
    {"top_p", "top_p"},
    {"top_k", "top_k"},
    {"min_p", "min_p"},
    {"repeat_penalty", "repetition_penalty"}};

std::string sampling_lines(const io::ModelFolder& folder) {
  std::string lines;
  const auto& config = folder.generation_config();
  if (!config) return lines;
  if (config->has("do_sample") && !config->bool_or("do_sample", true))
    return "PARAMETER temperature 0\n";
  for (const auto& [parameter, key] : kSampling)
    if (const io::Json* const value = config->find(key); value != nullptr && value->is_number())
      lines += fmt::format("PARAMETER {} {}\n", parameter, value->dump());
  return lines;
}

}  // namespace

std::string TurnTexts::go_template() const {
  std::string text;
  if (!system_after.empty())
    text += "{{ if .System }}" + go_text(system_before) + "{{ .System }}" + go_text(system_after) +
            "{{ else }}" + go_text(start) + "{{ end }}";
  else
    text += go_text(start);
  text += "{{ range .Messages }}{{ if eq .Role \"user\" }}" + go_text(user_before) +
          "{{ .Content }}" + go_text(user_after) + "{{ else if eq .Role \"assistant\" }}" +
          go_text(assistant_before) + "{{ .Content }}" + go_text(assistant_after) +
          "{{ end }}{{ end }}" + go_text(prompt);
  return text;
}

std::string TurnTexts::render(const ordered_json& messages) const {
  std::string text = start;
  for (const ordered_json& message : messages) {
    const std::string role = message["role"], content = message["content"];
    if (role == "system")
      text = system_before + content + system_after;
    else if (role == "user")
      text += user_before + content + user_after;
    else
      text += assistant_before + content + assistant_after;
  }
  return text + prompt;
}

std::optional<TurnTexts> turn_texts(const text::ChatTemplate& chat_template,
                                    const std::string& bos) {
  try {
    return TurnReader(chat_template, bos).read();
  } catch (const DataError&) {
    return std::nullopt;
  }
}

Modelfile make_modelfile(const io::ModelFolder& folder, const text::ChatTemplate* chat_template,
                         const std::vector<int32_t>& ends, const std::string& gguf_name) {
  const text::Tokenizer tokenizer = text::Tokenizer::load(folder.path());
  Modelfile file{.text = fmt::format("FROM ./{}\n", gguf_name), .notices = {}};
  std::optional<TurnTexts> turns;
  if (chat_template != nullptr) {
    const std::string bos =
        tokenizer.adds_bos() ? tokenizer.piece(tokenizer.bos_id().value()) : std::string();
    turns = turn_texts(*chat_template, bos);
    if (!turns)
      file.notices.push_back(
          "the chat template cannot be said in a Modelfile: Ollama looks for a template of its own "
          "that is like the one in the GGUF file, and takes none where it finds none");
    else if (chat_template->mentions("tools"))
      file.notices.push_back("the Modelfile's template has no tools, and the model's has");
  } else {
    file.notices.push_back("the model has no chat template, and the Modelfile none");
  }
  if (turns) file.text += "TEMPLATE \"\"\"" + turns->go_template() + "\"\"\"\n";
  for (const int32_t id : models::ends_in_order(folder, ends))
    file.text += fmt::format("PARAMETER stop {}\n", ordered_json(tokenizer.piece(id)).dump());
  file.text += sampling_lines(folder);
  return file;
}

}  // namespace convoy::recipes
