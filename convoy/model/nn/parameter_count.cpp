// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/nn/causal_lm.h"

namespace convoy::nn {

int64_t count_parameters(CausalLm& model) {
  int64_t count = 0;
  for (const NamedTensor& parameter : model.parameters()) count += parameter.value.numel();
  for (const Linear* linear : model.block_linears()) {
    if (!linear->is_bitsandbytes()) continue;
    for (const NamedTensor& part : linear->parts()) count -= part.value.numel();
    count += linear->weight().numel();
    if (linear->bias().defined()) count += linear->bias().numel();
  }
  return count;
}

}  // namespace convoy::nn
