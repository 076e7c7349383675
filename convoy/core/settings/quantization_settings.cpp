// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/quantization_settings.h"

#include <fmt/format.h>

namespace convoy::settings {

std::string QuantizationSettings::format(bool is_qlora) const {
  if (type != "auto") return type;
  if (load_in_8bit) return "int8";
  return load_in_4bit || is_qlora ? "nf4" : "none";
}

std::optional<QuantizationSettings::Problem> QuantizationSettings::problem(
    const std::string& mode) const {
  const bool is_qlora = mode == "qlora";
  const std::string chosen = format(is_qlora);
  if (load_in_4bit && load_in_8bit)
    return Problem{"load_in_8bit", "load_in_4bit and load_in_8bit exclude each other",
                   "remove one of them"};
  if (load_in_4bit && (chosen == "int8" || chosen == "none"))
    return Problem{"type", fmt::format("load_in_4bit is true, but type is {}", chosen),
                   "remove one of them"};
  if (load_in_8bit && chosen != "int8")
    return Problem{"type", fmt::format("load_in_8bit is true, but type is {}", chosen),
                   "remove one of them"};
  if (is_qlora && chosen == "none")
    return Problem{"type", "tuning.mode qlora needs weights in few bits, found none",
                   "remove it for nf4, or set tuning.mode: lora"};
  if (mode == "full" && chosen != "none")
    return Problem{"type",
                   fmt::format("tuning.mode full trains the weights themselves, which {} "
                               "cannot hold",
                               chosen),
                   "set tuning.mode: qlora, or remove the quantisation"};
  if ((block_size & (block_size - 1)) != 0)
    return Problem{"block_size",
                   fmt::format("wanted a power of two from 32 to 4096, found {}", block_size),
                   "remove it: 64 is the usual one"};
  return {};
}

}  // namespace convoy::settings
