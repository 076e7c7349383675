// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/pipeline/row_texts.h"

namespace convoy::process {

RowTexts::RowTexts(std::span<const KeptStep> kept) {
  for (const KeptStep& step : kept) kept_.emplace(step.key, &step);
}

const KeptStep* RowTexts::find_or_ask(const std::string& key,
                                      const std::function<TextRequest()>& request) {
  const auto found = kept_.find(key);
  if (found != kept_.end()) return found->second;
  asked_.push_back({.key = key, .request = request()});
  return nullptr;
}

}  // namespace convoy::process
