// SPDX-License-Identifier: Apache-2.0
//
// A row split into the question for a model and the expected answer.
#pragma once

#include <string>

#include "convoy/data/datasets/encoding/encode_sample.h"

namespace convoy::data {

struct Question {
  Sample prompt;          // for SampleEncoder::encode_prompt()
  std::string reference;  // the text of the answer
};

// Splits a sample. The answer is the completion, or the text of the last turn. Throws DataError
// with file and line when that turn is not the assistant's or has no text, and for plain texts.
Question split_answer(const Sample& sample);

}  // namespace convoy::data
