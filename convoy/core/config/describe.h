// SPDX-License-Identifier: Apache-2.0
//
// A field list as YAML, JSON, JSON schema and documentation.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/config/field_list.h"

namespace convoy::config {

nlohmann::json value_json(const Field& field);
std::string value_yaml(const Field& field);  // in flow style, on one line
// The values of all fields by path. The word "path=value" on a command line sets the same value.
std::map<std::string, std::string> assigned_values(const Section& list);
// The values of `given` that `usual`, a list of the same fields, has otherwise. By path, as
// assigned_values() gives them.
std::map<std::string, std::string> changed_values(const Section& given, const Section& usual);

std::string dump_yaml(const Section& list);
nlohmann::json dump_json(const Section& list);
// JSON Schema, draft 2020-12; unknown keys are errors there too.
nlohmann::json json_schema(const Section& list, const std::string& title);
// One Markdown table per section: key, kind, default, environment name, help.
std::string reference_markdown(const Section& list);

// Calls visit(path, field) for every field, sections in order.
template <class Visit>
void for_each_field(const Section& list, const std::string& prefix, const Visit& visit) {
  for (const Field& field : list.fields) visit(prefix + field.name, field);
  for (const Section& section : list.sections)
    for_each_field(section, prefix + section.name + ".", visit);
}

// Returns "TRAIN_BATCH_SIZE" for "train.batch_size". A top-level key gets the program's name as
// prefix: "CONVOY_SEED".
std::string environment_name(const std::string& path);

}  // namespace convoy::config
