// SPDX-License-Identifier: Apache-2.0
//
// The words of one line that says how rows are learnt: BOS, EOS, ends of turns and the mask.
#pragma once

#include <string>

#include "convoy/data/datasets/encoding/encode_sample.h"

namespace convoy::data {

// `row`: the sample, encoded with the others. A conversation needs a chat template.
std::string policy_line(const Sample& sample, const EncodedRow& row,
                        const text::Tokenizer& tokenizer, const text::ChatTemplate* chat_template,
                        const Supervision& supervision);

}  // namespace convoy::data
