// SPDX-License-Identifier: Apache-2.0
//
// The texts that a row has, and the texts that its stages request. One thread.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/farm/process/pipeline/row_program.h"

namespace convoy::process {

class RowTexts {
 public:
  // `kept` must outlive this object.
  explicit RowTexts(std::span<const KeptStep> kept);

  // The text of `key`. If the row does not have it, calls `request`, requests that text and returns
  // null.
  const KeptStep* find_or_ask(const std::string& key, const std::function<TextRequest()>& request);

  std::vector<Step> take_asked() { return std::move(asked_); }

 private:
  std::map<std::string_view, const KeptStep*> kept_;
  std::vector<Step> asked_;
};

}  // namespace convoy::process
