// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/text_engine.h"

#include "convoy/core/base/error.h"

namespace convoy::process {

std::string_view text_finish_name(TextFinish finish) {
  switch (finish) {
    case TextFinish::Stop:
      return "stop";
    case TextFinish::Length:
      return "length";
    case TextFinish::Error:
      break;
  }
  return "error";
}

std::string_view finish_word(TextFinish finish, const std::string& other_finish) {
  return other_finish.empty() ? text_finish_name(finish) : std::string_view(other_finish);
}

TextFinish text_finish_named(std::string_view name) {
  for (const TextFinish finish : {TextFinish::Stop, TextFinish::Length, TextFinish::Error}) {
    if (text_finish_name(finish) == name) return finish;
  }
  throw DataError(fmt::format("a text ended with '{}'; wanted stop, length or error", name),
                  {.hint = "the store of this run is damaged: start anew with another --run-dir, "
                           "or restore a copy"});
}

}  // namespace convoy::process
