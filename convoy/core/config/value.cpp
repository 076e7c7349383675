// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/config/value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "convoy/core/base/error.h"
#include "convoy/core/base/lower_case.h"
#include "convoy/core/base/suggest.h"
#include "convoy/core/base/text_as.h"
#include "convoy/core/base/trimmed.h"

namespace convoy::config {
namespace {

template <class T>
inline constexpr bool kIsMap = false;
template <class T>
inline constexpr bool kIsMap<OrderedMap<T>> = true;
template <class T>
inline constexpr bool kIsList = false;
template <class T>
inline constexpr bool kIsList<std::vector<T>> = true;
template <class T>
inline constexpr bool kIsAuto = false;
template <class T>
inline constexpr bool kIsAuto<AutoOr<T>> = true;

std::string found(const Node& node) {
  switch (node.kind) {
    case NodeKind::Null:
      return "nothing";
    case NodeKind::List:
      return "a list";
    case NodeKind::Map:
      return "a section";
    case NodeKind::Scalar:
      break;
  }
  const std::string text = node.text.size() > 60 ? node.text.substr(0, 57) + "..." : node.text;
  return fmt::format("\"{}\"", text);
}

[[noreturn]] void refuse(const std::string& path, const std::string& wanted, const Node& node,
                         std::string hint = {}) {
  throw node.error(fmt::format("{}: wanted {}, found {}", path, wanted, found(node)), path,
                   std::move(hint));
}

double read_double(const Node& node, const std::string& path, const std::string& wanted) {
  if (node.kind != NodeKind::Scalar) refuse(path, wanted, node);
  std::string_view text = node.text;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto number = text_as<double>(text);
  if (!number || !std::isfinite(*number)) refuse(path, wanted, node);
  return *number;
}

int64_t read_integer(const Node& node, const std::string& path, const std::string& wanted) {
  if (node.kind != NodeKind::Scalar) refuse(path, wanted, node);
  std::string_view text = node.text;
  if (text.starts_with('+')) text.remove_prefix(1);
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  if (digits.size() > 1 && digits[0] == '0' && std::isdigit(static_cast<unsigned char>(digits[1])))
    refuse(path, wanted, node, "a leading 0 is octal to some readers; write it without");
  if (const auto number = text_as<int64_t>(text)) return *number;
  // 2e8 and 3.0 count as whole numbers. Beyond 2^53 a double is not exact.
  const double real = read_double(node, path, wanted);
  if (std::trunc(real) != real) refuse(path, wanted, node);
  if (std::abs(real) > 9007199254740992.0)
    refuse(path, wanted, node, "the greatest is 9223372036854775807, or 9e15 with an exponent");
  return static_cast<int64_t>(real);
}

// Says what to write for a word that YAML 1.1 and other languages take for a boolean; empty for
// others.
std::string boolean_hint(const std::string& word) {
  const std::string text = lower_case(word);
  for (const char* yes : {"yes", "on", "y", "1", "t"})
    if (text == yes) return "write true";
  for (const char* no : {"no", "off", "n", "0", "f"})
    if (text == no) return "write false";
  return {};
}

bool read_bool(const Node& node, const std::string& path,
               const std::string& wanted = "true or false") {
  if (node.kind != NodeKind::Scalar) refuse(path, wanted, node);
  const std::string& text = node.text;
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  // 1 and 0 are usual in environment variables. Files and the command line have one rule.
  if (node.origin.starts_with("environment ") && (text == "1" || text == "0")) return text == "1";
  refuse(path, wanted, node, boolean_hint(text));
}

std::string read_text(const Node& node, const std::string& path) {
  // A text outside a file may begin with a bracket; its node keeps the original text.
  if (node.kind != NodeKind::Scalar && node.text.empty()) refuse(path, "text", node);
  return node.text;
}

template <class T>
T read_scalar(const Node& node, const std::string& path) {
  if constexpr (std::is_same_v<T, bool>) return read_bool(node, path);
  if constexpr (std::is_same_v<T, int64_t>) return read_integer(node, path, "an integer");
  if constexpr (std::is_same_v<T, double>) return read_double(node, path, "a number");
  if constexpr (std::is_same_v<T, std::string>) return read_text(node, path);
}

template <class T>
void read_auto(AutoOr<T>& target, const Node& node, const std::string& path) {
  if (node.kind == NodeKind::Scalar && node.text == "auto") {
    target.value.reset();
  } else if constexpr (std::is_same_v<T, bool>) {
    target.value = read_bool(node, path, "true, false or auto");
  } else if constexpr (std::is_same_v<T, int64_t>) {
    target.value = read_integer(node, path, "an integer or auto");
  } else {
    target.value = read_double(node, path, "a number or auto");
  }
}

template <class T>
std::vector<T> read_list(const Node& node, const std::string& path) {
  std::vector<T> list;
  if (node.kind == NodeKind::Scalar && node.text.starts_with('[') && !node.origin.empty())
    refuse(path, "a list", node, "a bracket is not closed");
  if (node.kind == NodeKind::Scalar) {
    list.push_back(read_scalar<T>(node, path));
    return list;
  }
  if (node.kind != NodeKind::List) refuse(path, "a list", node);
  for (const Node& item : node.items)
    list.push_back(read_scalar<T>(item, fmt::format("{}[{}]", path, list.size())));
  return list;
}

// Splits "a, b" at commas, as shells write lists, for numbers and fixed words, which contain no
// commas. Returns any other node unchanged.
Node split_at_commas(const Node& node) {
  if (node.kind != NodeKind::Scalar || node.text.find(',') == std::string::npos ||
      node.text.starts_with('['))
    return node;
  Node list = node;
  list.kind = NodeKind::List;
  list.text.clear();
  for (size_t begin = 0; begin <= node.text.size();) {
    const size_t end = std::min(node.text.find(',', begin), node.text.size());
    Node item = node;
    item.text = std::string(trimmed(std::string_view(node.text).substr(begin, end - begin), " \t"));
    list.items.push_back(std::move(item));
    begin = end + 1;
  }
  return list;
}

// The node of one item of a list or map; it may be lines below its key.
const Node& item_of(const Node& node, size_t index) {
  return node.kind == NodeKind::List && index < node.items.size() ? node.items[index] : node;
}

const Node& entry_of(const Node& node, const std::string& name) {
  const Node* const entry = node.kind == NodeKind::Map ? node.find(name) : nullptr;
  return entry == nullptr ? node : *entry;
}

template <class T>
OrderedMap<T> read_map(const Node& node, const std::string& path) {
  // Values of flags are texts, and so may be values that a program wrote into its file.
  const Node pairs = node.kind == NodeKind::Scalar ? parse_inline(node.text, node.where()) : node;
  if (pairs.kind != NodeKind::Map) refuse(path, "pairs in braces, {name: value}", node);
  OrderedMap<T> map;
  for (const auto& [name, value] : pairs.entries)
    map.pairs.emplace_back(name, read_scalar<T>(value, path + "." + name));
  return map;
}

using Json = nlohmann::ordered_json;

// Reads a word by YAML's core schema.
Json json_of_word(const Node& node) {
  const std::string& text = node.text;
  if (node.quoted) return text;
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  if (text == "null" || text == "Null" || text == "NULL" || text == "~") return nullptr;
  const bool may_be_number =
      !text.empty() && text.find_first_not_of("+-.0123456789eE") == std::string::npos;
  if (!may_be_number) return text;
  const std::string_view digits = std::string_view(text).substr(text[0] == '+' ? 1 : 0);
  if (const auto integer = text_as<int64_t>(digits)) return *integer;
  if (const auto number = text_as<double>(digits); number && std::isfinite(*number)) return *number;
  return text;
}

Json json_of(const Node& node) {
  switch (node.kind) {
    case NodeKind::Null:
      return nullptr;
    case NodeKind::Scalar:
      return json_of_word(node);
    case NodeKind::List: {
      Json list = Json::array();
      for (const Node& item : node.items) list.push_back(json_of(item));
      return list;
    }
    case NodeKind::Map:
      break;
  }
  Json map = Json::object();
  for (const auto& [name, value] : node.entries) map[name] = json_of(value);
  return map;
}

JsonMap read_json_map(const Node& node, const std::string& path) {
  const Node pairs = node.kind == NodeKind::Scalar ? parse_inline(node.text, node.where()) : node;
  if (pairs.kind != NodeKind::Map) refuse(path, "pairs in braces, {name: value}", node);
  JsonMap map;
  map.json = json_of(pairs).dump();
  return map;
}

JsonList read_json_list(const Node& node, const std::string& path) {
  const Node items = node.kind == NodeKind::Scalar ? parse_inline(node.text, node.where()) : node;
  if (items.kind != NodeKind::List) refuse(path, "a list of {name: value}", node);
  Json list = Json::array();
  for (const Node& item : items.items) {
    if (item.kind != NodeKind::Map)
      refuse(fmt::format("{}[{}]", path, list.size()), "pairs, {name: value}", item);
    list.push_back(json_of(item));
  }
  JsonList read;
  read.json = list.dump();
  return read;
}

void check_number(const Field& field, double number, const Node& node, const std::string& path) {
  const bool low = field.minimum &&
                   (field.minimum_excluded ? number <= *field.minimum : number < *field.minimum);
  if (low || (field.maximum && number > *field.maximum))
    throw node.error(fmt::format("{} must be {}, found {}", path, value_bounds(field), number),
                     path);
}

void check_choice(const Field& field, const std::string& text, const Node& node,
                  const std::string& path) {
  if (field.choices.empty()) return;
  if (std::find(field.choices.begin(), field.choices.end(), text) != field.choices.end()) return;
  const bool is_boolean =
      std::find(field.choices.begin(), field.choices.end(), "true") != field.choices.end();
  throw node.error(
      fmt::format("{} must be {}, found {}{}", path, value_bounds(field),
                  node.kind == NodeKind::Scalar ? found(node) : fmt::format("\"{}\"", text),
                  did_you_mean(text, field.choices)),
      path, is_boolean ? boolean_hint(text) : "");
}

}  // namespace

void check_bounds(const Field& field, const Node& node, const std::string& path) {
  std::visit(
      [&](auto* member) {
        using T = std::remove_pointer_t<decltype(member)>;
        if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, double>) {
          check_number(field, static_cast<double>(*member), node, path);
        } else if constexpr (kIsAuto<T>) {
          if (member->value) check_number(field, static_cast<double>(*member->value), node, path);
        } else if constexpr (std::is_same_v<T, std::string>) {
          check_choice(field, *member, node, path);
        } else if constexpr (std::is_same_v<T, NameList>) {
          for (size_t index = 0; index < member->names.size(); ++index)
            check_choice(field, member->names[index], item_of(node, index), path);
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          for (size_t index = 0; index < member->size(); ++index)
            check_choice(field, (*member)[index], item_of(node, index), path);
        } else if constexpr (kIsMap<T>) {
          for (const auto& [name, number] : *member)
            check_number(field, static_cast<double>(number), entry_of(node, name),
                         path + "." + name);
        } else if constexpr (kIsList<T>) {
          for (size_t index = 0; index < member->size(); ++index)
            check_number(field, static_cast<double>((*member)[index]), item_of(node, index), path);
        }
      },
      field.value);
}

void set_value(const Field& field, const Node& given, const std::string& path) {
  const bool is_texts = std::holds_alternative<std::vector<std::string>*>(field.value);
  const bool is_list = std::visit(
      [](auto* member) { return kIsList<std::remove_pointer_t<decltype(member)>>; }, field.value);
  // Free text may contain commas of its own.
  const Node node =
      is_list && (!is_texts || !field.choices.empty()) ? split_at_commas(given) : given;
  std::visit(
      [&](auto* member) {
        using T = std::remove_pointer_t<decltype(member)>;
        if constexpr (std::is_same_v<T, NameList>) {
          member->names = read_list<std::string>(node, path);
        } else if constexpr (kIsAuto<T>) {
          read_auto(*member, node, path);
        } else if constexpr (kIsMap<T>) {
          *member = read_map<typename T::mapped_type>(node, path);
        } else if constexpr (kIsList<T>) {
          *member = read_list<typename T::value_type>(node, path);
        } else if constexpr (std::is_same_v<T, JsonMap>) {
          *member = read_json_map(node, path);
        } else if constexpr (std::is_same_v<T, JsonList>) {
          *member = read_json_list(node, path);
        } else {
          *member = read_scalar<T>(node, path);
        }
      },
      field.value);
  check_bounds(field, node, path);
}

std::string value_kind(const Field& field) {
  struct Namer {
    std::string operator()(bool*) const { return "true or false"; }
    std::string operator()(int64_t*) const { return "integer"; }
    std::string operator()(double*) const { return "number"; }
    std::string operator()(std::string*) const { return "text"; }
    std::string operator()(AutoOr<bool>*) const { return "true, false or auto"; }
    std::string operator()(AutoOr<int64_t>*) const { return "integer or auto"; }
    std::string operator()(AutoOr<double>*) const { return "number or auto"; }
    std::string operator()(NameList*) const { return "text or list of text"; }
    std::string operator()(std::vector<std::string>*) const { return "list of text"; }
    std::string operator()(std::vector<int64_t>*) const { return "list of integers"; }
    std::string operator()(std::vector<double>*) const { return "list of numbers"; }
    std::string operator()(OrderedMap<int64_t>*) const { return "name: integer"; }
    std::string operator()(OrderedMap<double>*) const { return "name: number"; }
    std::string operator()(JsonMap*) const { return "name: value"; }
    std::string operator()(JsonList*) const { return "list of {name: value}"; }
  };
  return std::visit(Namer{}, field.value);
}

std::string value_bounds(const Field& field) {
  if (!field.choices.empty()) return fmt::format("one of {}", fmt::join(field.choices, ", "));
  std::string text;
  if (field.minimum)
    text = fmt::format("{} {}", field.minimum_excluded ? "above" : "at least", *field.minimum);
  if (field.maximum)
    text += fmt::format("{}at most {}", text.empty() ? "" : " and ", *field.maximum);
  return text;
}

}  // namespace convoy::config
