// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/evaluate/figures_text.h"

#include <fmt/format.h>

namespace convoy::evaluate {

std::string figures_text(const nlohmann::json& figures) {
  std::string text;
  for (const auto& [name, value] : figures.items())
    text += fmt::format("{:<21} {}\n", name, value.dump());
  return text;
}

}  // namespace convoy::evaluate
