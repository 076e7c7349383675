// SPDX-License-Identifier: Apache-2.0
//
// One line that says how rows are learnt: BOS, EOS, ends of turns and the mask.
#pragma once

#include <string>

#include "convoy/data/datasets/encoding/encode_sample.h"

namespace convoy::data {

// Encodes `sample` and describes it. Throws DataError as SampleEncoder::encode() does, and when
// data.train_on_eos selects end tokens that the chat template does not write.
std::string policy_line(const Sample& sample, const text::Tokenizer& tokenizer,
                        const text::ChatTemplate* chat_template, const Supervision& supervision);

}  // namespace convoy::data
