// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/pipeline/stage_schemas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/nearby_files.h"
#include "convoy/core/io/json_text.h"
#include "convoy/data/text/answer_grammar.h"

namespace convoy::process {
namespace {

using io::Json;

constexpr const char* kScores = "scores";
constexpr int64_t kMostBytes = int64_t{16} << 20;

std::string key_of(const std::string& stage) { return stage + ".schema"; }

Json schema_of_scores(const settings::EvaluateSettings& evaluate) {
  Json schema = {{"type", "object"}, {"properties", Json::object()}, {"required", Json::array()}};
  for (const auto& [criterion, weight] : evaluate.weights) {
    schema["properties"][criterion] = {{"type", "number"}, {"minimum", 0}, {"maximum", 1}};
    schema["required"].push_back(criterion);
  }
  schema["additionalProperties"] = false;
  return schema;
}

Json read_schema(const std::string& file, const std::string& key) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored))
    throw ConfigError(fmt::format("{}: there is no file {}", key, file),
                      {.key = key, .hint = unreadable_file_hint(file, ENOENT)});
  Json schema;
  try {
    schema = io::read_json_file(file, {.max_bytes = kMostBytes});
  } catch (const DataError& error) {
    throw ConfigError(fmt::format("{}: {}", key, error.what()),
                      {.key = key, .hint = "write the JSON Schema as one JSON object"});
  }
  if (schema.is_object()) return schema;
  throw ConfigError(
      fmt::format("{}: wanted a JSON object in {}, found {}", key, file, io::shown(schema)),
      {.key = key, .hint = "write the JSON Schema as one JSON object"});
}

bool has_required(const Json& schema, const std::string& name) {
  const Json required = schema.value("required", Json::array());
  return std::find(required.begin(), required.end(), name) != required.end();
}

void check_criteria(const settings::EvaluateSettings& evaluate, const Json& schema) {
  for (const auto& [criterion, weight] : evaluate.weights)
    if (!schema.value("properties", Json::object()).contains(criterion) ||
        !has_required(schema, criterion))
      throw ConfigError(
          fmt::format("evaluate.schema: `{}` of evaluate.weights must be in its `properties` and "
                      "`required`, or a judgement may have no score",
                      criterion),
          {.key = "evaluate.schema", .hint = "add the property, or take --evaluate-schema scores"});
}

}  // namespace

StageSchemas read_stage_schemas(const settings::ProcessSettings& settings) {
  StageSchemas schemas;
  const std::pair<const char*, const std::string*> files[] = {
      {"generate", &settings.generate.schema},
      {"evaluate", &settings.evaluate.schema},
      {"improve", &settings.improve.schema}};
  for (const auto& [stage, file] : files) {
    if (file->empty()) continue;
    const bool is_of_weights = file == &settings.evaluate.schema && *file == kScores;
    schemas[stage] =
        (is_of_weights ? schema_of_scores(settings.evaluate) : read_schema(*file, key_of(stage)))
            .dump();
  }
  return schemas;
}

void check_stage_schemas(const settings::ProcessSettings& settings, const StageSchemas& schemas) {
  for (const auto& [stage, text] : schemas) {
    const std::string key = key_of(stage);
    if (std::find(settings.stages.begin(), settings.stages.end(), stage) == settings.stages.end())
      throw ConfigError(fmt::format("{} is set, but stages has no {}", key, stage),
                        {.key = key, .hint = fmt::format("add {} to stages", stage)});
    if (stage == "evaluate") check_criteria(settings.evaluate, Json::parse(text));
    if (settings.remote.is_used()) continue;
    try {
      text::check_grammar({text::GrammarKind::JsonSchema, text});
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("{}: {}", key, error.what()),
                        {.key = key, .hint = error.location().hint});
    }
  }
}

}  // namespace convoy::process
