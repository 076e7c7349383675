// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/data/data_rows.h"

#include <fmt/format.h>

#include <map>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/config/describe.h"
#include "convoy/data/datasets/sources/output_check.h"

namespace convoy::apps {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

void take_words(const std::vector<std::string>& words, std::string& data, std::string* output) {
  std::vector<std::string*> places = {&data};
  if (output != nullptr) places.push_back(output);
  size_t place = 0;
  for (const std::string& word : words) {
    while (place < places.size() && !places[place]->empty()) ++place;
    if (place == places.size())
      throw ConfigError(fmt::format("unexpected word `{}`", word),
                        {.key = word, .hint = "the positional words are INPUT and OUTPUT"});
    *places[place] = word;
  }
  if (data.empty())
    throw ConfigError("no input rows given", {.key = "--data", .hint = "--data FILE"});
}

data::RowPass row_pass_of(const settings::DataInputFlags& flags) {
  return {.dataset = data::find_dataset({.name = flags.data,
                                         .config = flags.dataset_config,
                                         .split = flags.dataset_split,
                                         .text_rows = data::text_rows_named(flags.text_rows)}),
          .bad_rows = data::bad_rows_named(flags.bad_rows)};
}

data::SchemaConfig schema_of(const settings::DataInputFlags& flags) {
  return {.schema = flags.schema, .text_field = flags.text_field};
}

void refuse_existing(const fs::path& output, bool force) {
  std::error_code absent;
  if (!force && fs::exists(output, absent))
    throw ConfigError(
        "the output exists already",
        {.file = output.string(), .key = "--output", .hint = "--force overwrites it"});
}

void require_output(const fs::path& output, const data::RowPass& pass, bool force) {
  if (output.empty())
    throw ConfigError("no output given", {.key = "--output", .hint = "--output FILE"});
  data::refuse_outputs_among_inputs({output}, pass.dataset.name, pass.dataset.files);
  data::require_row_output(output);
  refuse_existing(output, force);
}

std::string text_or_file(const std::string& text, const std::string& file, const char* flag) {
  if (text.empty() == file.empty())
    throw ConfigError(
        fmt::format("wanted one of --{} and --{}-file", flag, flag),
        {.key = flag, .hint = fmt::format("give --{} TEXT or --{}-file FILE", flag, flag)});
  if (file.empty()) return text;
  std::string found = read_file(file);
  while (!found.empty() && (found.back() == '\n' || found.back() == '\r')) found.pop_back();
  if (found.empty())
    throw DataError("the file is empty", {.file = file, .hint = "write the text into it"});
  return found;
}

Json changed_flags(const config::Section& flags, const config::Section& defaults) {
  std::map<std::string, std::string> usual;
  config::for_each_field(defaults, "", [&](const std::string& name, const config::Field& field) {
    usual[name] = config::value_yaml(field);
  });
  Json changed = Json::object();
  config::for_each_field(flags, "", [&](const std::string& name, const config::Field& field) {
    if (const std::string value = config::value_yaml(field); value != usual[name])
      changed[name] = value;
  });
  return changed;
}

void conclude(const Context& context, const DataWork& work, const data::RowPass& pass,
              const fs::path& output, const std::vector<data::WrittenFile>& written) {
  data::Manifest manifest;
  for (const fs::path& file : pass.dataset.files)
    manifest.inputs.push_back(data::record_of_file(file));
  for (const data::WrittenFile& file : written) manifest.outputs.push_back(data::record_of(file));
  manifest.rows_by_state = {
      {"read", work.rows_read}, {"bad", work.rows_bad}, {"written", work.rows_written}};
  for (const auto& [name, figure] : work.more.items())
    if (figure.is_number_integer()) manifest.rows_by_state[name] = figure;
  manifest.configuration = {{"command", "data " + work.action}, {"flags", work.flags}};
  const fs::path path = data::publish_manifest(output, manifest);
  if (context.common.json) {
    Json report = {{"action", work.action},
                   {"rows_read", work.rows_read},
                   {"rows_bad", work.rows_bad},
                   {"rows_written", work.rows_written}};
    report.update(work.more);
    Json files = Json::array();
    for (const data::WrittenFile& file : written)
      files.push_back({{"path", file.path.string()},
                       {"rows", file.rows},
                       {"bytes", file.bytes},
                       {"sha256", file.sha256}});
    report["files"] = std::move(files);
    report["manifest"] = path.string();
    fmt::print("{}\n", report.dump());
    return;
  }
  std::string line =
      fmt::format("{} of {} written", work.rows_written, counted(work.rows_read, "row"));
  for (const auto& [name, figure] : work.more.items())
    if (figure.is_primitive()) line += fmt::format("; {} {}", name, figure.dump());
  for (const data::WrittenFile& file : written)
    line += fmt::format("\n  {}: {}", file.path.string(), counted(file.rows, "row"));
  context.log().info(line);
}

}  // namespace convoy::apps
