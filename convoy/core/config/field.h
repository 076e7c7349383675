// SPDX-License-Identifier: Apache-2.0
//
// Value types that settings structs use beside plain bool, int64_t, double, std::string,
// std::vector and nested structs. A settings struct lists its members once, in
//
//   template <class Visitor>
//   void fields(Visitor& visit) {
//     visit("batch_size", batch_size, "rows per micro-batch and rank").at_least(1);
//     visit("lora", lora, "low-rank adapters");                     // a nested struct: recursion
//     visit("learning_rate", lr, "peak learning rate").above(0).alias("lr");
//     visit("scheduler", scheduler, "...").one_of({"linear", "cosine"});
//   }
//
// Parser, help, schema, run record and docs are visitors over that list. The handle that visit()
// returns offers at_least(x), at_most(x), above(x), one_of({...}), alias("name"), flag("word") and
// hidden(); the calls can be chained.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace convoy::config {

// A value that may be `auto` in the file: the program then chooses it and reports its choice.
template <class T>
struct AutoOr {
  std::optional<T> value;  // empty = auto
  AutoOr() = default;
  AutoOr(T fixed) : value(std::move(fixed)) {}  // NOLINT: a plain value is meant to convert
  bool is_auto() const { return !value.has_value(); }
  bool operator==(const AutoOr&) const = default;
};

// A list that may be written as one scalar (`target_modules: auto`, `stop: "\n"`).
struct NameList {
  std::vector<std::string> names;
  NameList() = default;
  NameList(std::vector<std::string> list) : names(std::move(list)) {}  // NOLINT
  bool operator==(const NameList&) const = default;
};

// `name: value` pairs of numbers, in the order written.
template <class T>
struct OrderedMap {
  using mapped_type = T;
  std::vector<std::pair<std::string, T>> pairs;
  OrderedMap() = default;
  OrderedMap(std::initializer_list<std::pair<std::string, T>> list) : pairs(list) {}
  auto begin() const { return pairs.begin(); }
  auto end() const { return pairs.end(); }
  bool empty() const { return pairs.empty(); }
  bool operator==(const OrderedMap&) const = default;
};

// `name: value` pairs of any JSON type, passed to a reader outside Convoy (a chat template). A
// plain word has its YAML type: `enable_thinking: false` is a boolean, `lang: "no"` a text.
struct JsonMap {
  std::string json = "{}";  // one JSON object, its names in the order written
  JsonMap() = default;
  bool empty() const { return json == "{}"; }
  bool operator==(const JsonMap&) const = default;
};

// A list of `{name: value}` maps; the code that uses the setting checks the names.
struct JsonList {
  std::string json = "[]";  // one JSON list of objects
  JsonList() = default;
  bool empty() const { return json == "[]"; }
  bool operator==(const JsonList&) const = default;
};

}  // namespace convoy::config
