// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/text/template_sources.h"

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/wide_text.h"
#include "convoy/core/io/model_text.h"

namespace convoy::text {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr int64_t kMaxTemplateBytes = int64_t{4} << 20;

[[noreturn]] void refuse_template(const char* wanted, const std::string& file) {
  throw DataError(fmt::format("chat_template: wanted {}", wanted),
                  {.file = file,
                   .key = "chat_template",
                   .hint = "correct chat_template there, or name a template with --template-path"});
}

// Adds the templates in `written`, the value of chat_template in tokenizer_config.json.
void add_written(const ordered_json& written, const std::string& file,
                 std::map<std::string, TemplateSource>& sources) {
  if (written.is_null()) return;
  if (written.is_string()) {
    sources[kUsualTemplate] = {written.get<std::string>(), file, true};
    return;
  }
  if (!written.is_array()) refuse_template("a string or a list of {name, template}", file);
  for (const auto& entry : written) {
    if (!entry.is_object() || !entry.contains("name") || !entry["name"].is_string() ||
        !entry.contains("template") || !entry["template"].is_string())
      refuse_template("a list of {name, template}", file);
    sources[entry["name"].get<std::string>()] = {entry["template"].get<std::string>(), file, true};
  }
}

}  // namespace

std::map<std::string, TemplateSource> find_template_sources(const fs::path& folder,
                                                            const fs::path& override_path,
                                                            const TokenizerSettings& settings) {
  std::map<std::string, TemplateSource> sources;
  const auto take_file = [&sources](const char* name, const fs::path& file) {
    std::string source = read_file(file, kMaxTemplateBytes);
    refuse_wide_text(source, file);
    sources[name] = {std::move(source), file.string()};
  };
  if (!override_path.empty()) {
    take_file(kUsualTemplate, override_path);
    return sources;
  }
  add_written(settings.chat_template,
              io::place_of_model_text(folder, "tokenizer_config.json").string(), sources);
  if (!fs::is_directory(folder)) return sources;
  if (const fs::path own = folder / "chat_template.jinja"; fs::exists(own))
    take_file(kUsualTemplate, own);
  if (const fs::path tools = folder / "additional_chat_templates" / "tool_use.jinja";
      fs::exists(tools))
    take_file("tool_use", tools);
  return sources;
}

std::string usual_template_text(const fs::path& model_folder) {
  const auto sources =
      find_template_sources(model_folder, {}, TokenizerSettings::load(model_folder));
  const auto usual = sources.find(kUsualTemplate);
  return usual == sources.end() ? std::string() : usual->second.text;
}

}  // namespace convoy::text
