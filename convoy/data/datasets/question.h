// SPDX-License-Identifier: Apache-2.0
//
// A row taken apart into what a model is asked and what it should answer.
#pragma once

#include <string>

#include "convoy/data/datasets/encode_sample.h"

namespace convoy::data {

struct Question {
  Sample prompt;          // for SampleEncoder::encode_prompt()
  std::string reference;  // the text of the answer
};

// The answer is the completion, or the text of the last turn. Throws DataError with file and line
// when that is not the assistant's or has no text, and for plain texts.
Question split_answer(const Sample& sample);

}  // namespace convoy::data
