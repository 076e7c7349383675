// SPDX-License-Identifier: Apache-2.0
//
// Shared parts of the sub-commands of `convoy data`: input rows, output, report.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "convoy/apps/front/command.h"
#include "convoy/core/settings/data_flags.h"
#include "convoy/data/datasets/chain/row_pass.h"
#include "convoy/data/datasets/chain/sharded_rows_writer.h"
#include "convoy/data/datasets/manifest.h"
#include "convoy/data/datasets/schemas/schema.h"

namespace convoy::apps {

// Assigns the positional words of a sub-command: INPUT [OUTPUT]. Throws ConfigError for further
// words, and for a value that is given twice.
void take_words(const std::vector<std::string>& words, std::string& data, std::string* output);

// Throws ConfigError, DataError.
data::RowPass row_pass_of(const settings::DataInputFlags& flags);
data::SchemaConfig schema_of(const settings::DataInputFlags& flags);

// Throws ConfigError when the output is missing, has an unknown format, is among the inputs, or
// exists and may not be overwritten.
void require_output(const std::filesystem::path& output, const data::RowPass& pass, bool force);
// Throws ConfigError when the file or folder exists and may not be overwritten.
void refuse_existing(const std::filesystem::path& output, bool force);

// Returns `text` or the content of the file; exactly one must be given. Throws ConfigError,
// DataError.
std::string text_or_file(const std::string& text, const std::string& file, const char* flag);

// The work of a sub-command, for its report.
struct DataWork {
  std::string action;  // "convert"
  // Flags that differ from their defaults.
  nlohmann::ordered_json flags = nlohmann::ordered_json::object();
  int64_t rows_read = 0;
  int64_t rows_bad = 0;
  int64_t rows_written = 0;
  nlohmann::ordered_json more = nlohmann::ordered_json::object();  // further figures
};

// Writes the manifest beside `output` and reports the result: a line for people, an object with
// --json.
void conclude(const Context& context, const DataWork& work, const data::RowPass& pass,
              const std::filesystem::path& output, const std::vector<data::WrittenFile>& written);

// The values of `flags` that differ from the defaults.
nlohmann::ordered_json changed_flags(const config::Section& flags, const config::Section& defaults);
template <class Flags>
nlohmann::ordered_json flags_json(Flags flags) {
  Flags defaults;
  return changed_flags(config::list_fields(flags), config::list_fields(defaults));
}

// The sub-commands, grouped into files by kind.
int data_convert(Context& context, const std::vector<std::string>& arguments);
int data_mix(Context& context, const std::vector<std::string>& arguments);
int data_system(Context& context, const std::vector<std::string>& arguments);
int data_style(Context& context, const std::vector<std::string>& arguments);
int data_render(Context& context, const std::vector<std::string>& arguments);
int data_dedup(Context& context, const std::vector<std::string>& arguments);
int data_split(Context& context, const std::vector<std::string>& arguments);
int data_prepare(Context& context, const std::vector<std::string>& arguments);
int data_encode(Context& context, const std::vector<std::string>& arguments);
int data_stats(Context& context, const std::vector<std::string>& arguments);
int data_validate(Context& context, const std::vector<std::string>& arguments);
int data_check(Context& context, const std::vector<std::string>& arguments);

}  // namespace convoy::apps
