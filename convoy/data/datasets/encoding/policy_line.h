// SPDX-License-Identifier: Apache-2.0
//
// One line that says how rows are learnt: BOS, EOS, ends of turns and the mask.
#pragma once

#include <string>

#include "convoy/data/datasets/encoding/encode_sample.h"

namespace convoy::data {

// The line for one row. `row`: the encoding of `sample`. A conversation needs a chat template.
std::string policy_line(const Sample& sample, const EncodedRow& row,
                        const text::Tokenizer& tokenizer, const text::ChatTemplate* chat_template,
                        const Supervision& supervision);

}  // namespace convoy::data
