// SPDX-License-Identifier: Apache-2.0
//
// The parser and the writer of nlohmann-json are compiled once, in compiled_json.cpp. Without this
// file, every unit that reads or writes JSON took 1 s to 2 s more to compile. The precompiled
// headers include this file, so no unit needs to include it.
#pragma once

// nlohmann's literal operators are inline functions that parse: each unit would instantiate a
// parser for them, 0.6 s in all. No code uses them. They are only declared here; their bodies are
// moved to templates that are never instantiated.
#define _json(...)                 \
  _json(const char*, std::size_t); \
  template <class Never>           \
  nlohmann::json never_json(const Never* s, std::size_t n)
#include <nlohmann/json.hpp>
#undef _json
#include <string>
#include <string_view>

// The classes that implement parse() for a std::string and a std::string_view, and dump().
#define CONVOY_JSON_TEXT_CLASSES(declare, Json)                                          \
  declare class nlohmann::detail::serializer<Json>;                                      \
  declare class nlohmann::detail::lexer<                                                 \
      Json, nlohmann::detail::iterator_input_adapter<std::string::const_iterator>>;      \
  declare class nlohmann::detail::parser<                                                \
      Json, nlohmann::detail::iterator_input_adapter<std::string::const_iterator>>;      \
  declare class nlohmann::detail::lexer<                                                 \
      Json, nlohmann::detail::iterator_input_adapter<std::string_view::const_iterator>>; \
  declare class nlohmann::detail::parser<                                                \
      Json, nlohmann::detail::iterator_input_adapter<std::string_view::const_iterator>>

CONVOY_JSON_TEXT_CLASSES(extern template, nlohmann::json);
CONVOY_JSON_TEXT_CLASSES(extern template, nlohmann::ordered_json);
extern template class nlohmann::basic_json<>;
