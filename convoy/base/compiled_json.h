// SPDX-License-Identifier: Apache-2.0
//
// The parser and the writer of nlohmann-json are compiled once, in compiled_json.cpp: in every unit that reads or
// writes JSON they took 1 s to 2 s. The precompiled headers include this file; no unit needs to.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

// The classes behind parse() of a std::string and of a std::string_view, and behind dump().
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
