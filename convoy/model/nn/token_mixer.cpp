// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/nn/token_mixer.h"

#include "convoy/model/nn/attention.h"
#include "convoy/model/nn/gated_delta_net.h"

namespace convoy::nn {

std::unique_ptr<TokenMixer> make_token_mixer(const architecture::DecoderSpec& spec, int64_t index,
                                             const BlockSource& source) {
  if (spec.layers[index].mixer == architecture::TokenMixer::GatedDeltaNet)
    return std::make_unique<GatedDeltaNet>(spec, index, source);
  return std::make_unique<Attention>(spec, index, source);
}

}  // namespace convoy::nn
