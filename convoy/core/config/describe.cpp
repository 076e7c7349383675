// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/config/describe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "convoy/core/base/error.h"
#include "convoy/core/base/lower_case.h"
#include "convoy/core/config/value.h"

namespace convoy::config {
namespace {

using nlohmann::json;

// Words that some YAML parsers read as a type other than text.
bool reads_as_other(const std::string& text) {
  const std::string lower = lower_case(text);
  static constexpr const char* kWords[] = {"true", "false", "yes",  "no",  "on", "off",
                                           "y",    "n",     "null", "inf", "nan"};
  return std::find(std::begin(kWords), std::end(kWords), lower) != std::end(kWords);
}

std::string text_yaml(const std::string& text) {
  const auto plain = [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) || letter == '_' || letter == '/' ||
           letter == '.' || letter == '-';
  };
  const bool starts_plain = !text.empty() && (std::isalpha(static_cast<unsigned char>(text[0])) ||
                                              text[0] == '/' || text[0] == '_');
  if (starts_plain && std::all_of(text.begin(), text.end(), plain) && !reads_as_other(text))
    return text;
  return json(text).dump();
}

// The shortest text that reads back as the same double, also in parsers that require a point before
// the exponent.
std::string number_yaml(double number) {
  std::string text = fmt::format("{}", number);
  const size_t exponent = text.find('e');
  if (exponent != std::string::npos && text.find('.') == std::string::npos)
    text.insert(exponent, ".0");
  return text;
}

std::string scalar_yaml(bool value) { return value ? "true" : "false"; }
std::string scalar_yaml(int64_t value) { return fmt::format("{}", value); }
std::string scalar_yaml(double value) { return number_yaml(value); }
std::string scalar_yaml(const std::string& value) { return text_yaml(value); }

template <class T>
std::string scalar_yaml(const AutoOr<T>& value) {
  return value.is_auto() ? "auto" : scalar_yaml(*value.value);
}

template <class T>
std::string scalar_yaml(const std::vector<T>& list) {
  std::vector<std::string> items;
  for (const T& item : list) items.push_back(scalar_yaml(item));
  return fmt::format("[{}]", fmt::join(items, ", "));
}

std::string scalar_yaml(const NameList& list) { return scalar_yaml(list.names); }

template <class T>
std::string scalar_yaml(const OrderedMap<T>& map) {
  std::vector<std::string> items;
  for (const auto& [name, value] : map)
    items.push_back(fmt::format("{}: {}", text_yaml(name), scalar_yaml(value)));
  return fmt::format("{{{}}}", fmt::join(items, ", "));
}

// JSON is valid YAML.
std::string scalar_yaml(const JsonMap& map) { return map.json; }
std::string scalar_yaml(const JsonList& list) { return list.json; }

template <class T>
json plain_json(const T& value) {
  return json(value);
}
template <class T>
json plain_json(const AutoOr<T>& value) {
  return value.is_auto() ? json("auto") : json(*value.value);
}
template <class T>
json plain_json(const OrderedMap<T>& map) {
  json object = json::object();
  for (const auto& [name, value] : map) object[name] = value;
  return object;
}
json plain_json(const NameList& list) { return json(list.names); }
json plain_json(const JsonMap& map) { return json::parse(map.json); }
json plain_json(const JsonList& list) { return json::parse(list.json); }

void dump_section(const Section& list, const std::string& indent, std::string& out) {
  for (const Field& field : list.fields)
    out += fmt::format("{}{}: {}\n", indent, field.name, value_yaml(field));
  for (const Section& section : list.sections) {
    out += fmt::format("{}{}:\n", indent, section.name);
    dump_section(section, indent + "  ", out);
  }
}

struct SchemaOf {
  const Field& field;

  json number(const char* type) const {
    json schema = {{"type", type}};
    if (field.minimum)
      schema[field.minimum_excluded ? "exclusiveMinimum" : "minimum"] = *field.minimum;
    if (field.maximum) schema["maximum"] = *field.maximum;
    return schema;
  }
  json text() const {
    json schema = {{"type", "string"}};
    if (!field.choices.empty()) schema["enum"] = field.choices;
    return schema;
  }
  json or_auto(const json& schema) const { return {{"anyOf", {{{"const", "auto"}}, schema}}}; }
  json list(const json& items) const { return {{"type", "array"}, {"items", items}}; }
  json map(const json& values) const {
    return {{"type", "object"}, {"additionalProperties", values}};
  }

  json operator()(bool*) const { return {{"type", "boolean"}}; }
  json operator()(int64_t*) const { return number("integer"); }
  json operator()(double*) const { return number("number"); }
  json operator()(std::string*) const { return text(); }
  json operator()(AutoOr<bool>*) const { return or_auto({{"type", "boolean"}}); }
  json operator()(AutoOr<int64_t>*) const { return or_auto(number("integer")); }
  json operator()(AutoOr<double>*) const { return or_auto(number("number")); }
  json operator()(NameList*) const { return {{"anyOf", {text(), list(text())}}}; }
  json operator()(std::vector<std::string>*) const { return list(text()); }
  json operator()(std::vector<int64_t>*) const { return list(number("integer")); }
  json operator()(std::vector<double>*) const { return list(number("number")); }
  json operator()(OrderedMap<int64_t>*) const { return map(number("integer")); }
  json operator()(OrderedMap<double>*) const { return map(number("number")); }
  json operator()(JsonMap*) const { return {{"type", "object"}}; }
  json operator()(JsonList*) const { return list({{"type", "object"}}); }
};

// Fields that have an alias at another path, by the path of the alias.
using RootAliases = std::map<std::string, const Field*>;

json section_schema(const Section& list, const std::string& prefix,
                    const RootAliases& root_aliases) {
  json properties = json::object();
  for (const Field& field : list.fields) {
    json schema = std::visit(SchemaOf{field}, field.value);
    schema["description"] = field.help;
    schema["default"] = value_json(field);
    properties[field.name] = schema;
    for (const std::string& alias : field.aliases) {
      schema["description"] = "the same as " + field.name;
      schema.erase("default");
      properties[alias] = schema;
    }
    if (!field.winning_alias.empty()) properties[field.winning_alias] = schema;
  }
  for (const auto& [path, field] : root_aliases)
    if (path.starts_with(prefix) && path.find('.', prefix.size()) == std::string::npos)
      properties[path.substr(prefix.size())] = std::visit(SchemaOf{*field}, field->value);
  for (const Section& section : list.sections) {
    json schema = section_schema(section, prefix + section.name + ".", root_aliases);
    schema["description"] = section.help;
    properties[section.name] = schema;
    for (const std::string& alias : section.aliases) properties[alias] = schema;
  }
  return {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
}

std::string cell(std::string text) {
  for (size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2))
    text.insert(at, "\\");
  return text;
}

void reference_section(const Section& list, const std::string& prefix, std::string& out) {
  if (!list.fields.empty()) {
    out += prefix.empty()
               ? "\n## Top level\n\n"
               : fmt::format("\n## {}\n\n{}.\n\n", prefix.substr(0, prefix.size() - 1), list.help);
    out += "| key | value | default | meaning | also spelt | environment |\n";
    out += "|---|---|---|---|---|---|\n";
  }
  for (const Field& field : list.fields) {
    std::vector<std::string> spellings;
    for (const std::string& alias : field.aliases) spellings.push_back(prefix + alias);
    if (!field.winning_alias.empty()) spellings.push_back(prefix + field.winning_alias);
    for (const std::string& path : field.root_aliases) spellings.push_back(path);
    const std::string bounds = value_bounds(field);
    out += fmt::format("| `{}` | {}{} | `{}` | {} | {} | `{}` |\n", prefix + field.name,
                       value_kind(field), cell(bounds.empty() ? "" : ", " + bounds),
                       value_yaml(field), cell(field.help), fmt::join(spellings, ", "),
                       environment_name(prefix + field.name));
  }
  for (const Section& section : list.sections)
    reference_section(section, prefix + section.name + ".", out);
}

}  // namespace

json value_json(const Field& field) {
  return std::visit([](auto* member) { return plain_json(*member); }, field.value);
}

std::string value_yaml(const Field& field) {
  return std::visit([](auto* member) { return scalar_yaml(*member); }, field.value);
}

std::map<std::string, std::string> assigned_values(const Section& list) {
  std::map<std::string, std::string> values;
  for_each_field(list, "", [&](const std::string& path, const Field& field) {
    // A command line has no quotes around a text.
    const auto* const text = std::get_if<std::string*>(&field.value);
    values[path] = text == nullptr ? value_yaml(field) : **text;
  });
  return values;
}

std::map<std::string, std::string> changed_values(const Section& given, const Section& usual) {
  std::map<std::string, std::string> changed = assigned_values(given);
  const std::map<std::string, std::string> defaults = assigned_values(usual);
  std::erase_if(changed,
                [&](const auto& value) { return value.second == defaults.at(value.first); });
  return changed;
}

std::string dump_yaml(const Section& list) {
  std::string out;
  dump_section(list, "", out);
  return out;
}

json dump_json(const Section& list) {
  json tree = json::object();
  for (const Field& field : list.fields) tree[field.name] = value_json(field);
  for (const Section& section : list.sections) tree[section.name] = dump_json(section);
  return tree;
}

json json_schema(const Section& list, const std::string& title) {
  RootAliases root_aliases;
  for_each_field(list, "", [&root_aliases](const std::string&, const Field& field) {
    for (const std::string& path : field.root_aliases) root_aliases[path] = &field;
  });
  json schema = section_schema(list, "", root_aliases);
  schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  schema["title"] = title;
  const json text = {{"type", "string"}};
  const json texts = {{"anyOf", {text, {{"type", "array"}, {"items", text}}}}};
  schema["properties"]["include"] = texts;
  schema["properties"]["include"]["description"] = "files merged below this one";
  schema["properties"]["preset"] = text;
  schema["properties"]["preset"]["description"] = "named settings below files and includes";
  return schema;
}

std::string reference_markdown(const Section& list) {
  std::string out;
  reference_section(list, "", out);
  return out;
}

std::string environment_name(const std::string& path) {
  std::string name = path.find('.') == std::string::npos ? "CONVOY_" + path : path;
  for (char& letter : name)
    letter =
        letter == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return name;
}

}  // namespace convoy::config
