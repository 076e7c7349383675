// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/architecture/recompute.h"

#include "convoy/core/base/error.h"

namespace convoy::architecture {

Recompute recompute_of(std::string_view gradient_checkpointing) {
  for (const Recompute recompute : {Recompute::Nothing, Recompute::Selective, Recompute::Blocks})
    if (gradient_checkpointing == gradient_checkpointing_of(recompute)) return recompute;
  throw StateError(
      fmt::format("gradient_checkpointing `{}` is not settled", gradient_checkpointing));
}

std::string_view gradient_checkpointing_of(Recompute recompute) {
  switch (recompute) {
    case Recompute::Nothing:
      return "false";
    case Recompute::Selective:
      return "selective";
    case Recompute::Blocks:
      return "true";
  }
  return "false";
}

}  // namespace convoy::architecture
