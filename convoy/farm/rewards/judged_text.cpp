// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/rewards/judged_text.h"

#include "convoy/core/base/error.h"

namespace convoy::rewards {

nlohmann::ordered_json json_of(const JudgedText& text) {
  return {{"prompt", text.prompt}, {"text", text.text},     {"answers", text.answers},
          {"row", text.row},       {"tokens", text.tokens}, {"truncated", text.is_truncated}};
}

std::string line_of(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

DataError error_of_text(const settings::RewardSettings& settings, const JudgedText& text,
                        const std::string& what, const std::string& hint) {
  return DataError(fmt::format("reward `{}`: row {}, sample {}: {}", settings.name, text.row_number,
                               text.sample, what),
                   {.hint = hint});
}

void refuse_text(const settings::RewardSettings& settings, const JudgedText& text,
                 const std::string& what, const std::string& hint) {
  throw error_of_text(settings, text, what, hint);
}

void check_stop(const std::function<bool()>& stop_requested) {
  if (stop_requested && stop_requested()) throw StopRequest("stopped on request");
}

}  // namespace convoy::rewards
