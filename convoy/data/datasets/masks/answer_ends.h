// SPDX-License-Identifier: Apache-2.0
//
// The special tokens with which answers end: by a chat template, and by the rows that a model
// learnt.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "convoy/data/datasets/tokens/token_dataset.h"
#include "convoy/data/text/chat_template.h"
#include "convoy/data/text/tokenizer.h"

namespace convoy::data {

// The special token that the template writes behind the text of an answer; empty when it writes
// none.
std::optional<int32_t> turn_end(const text::ChatTemplate& chat_template,
                                const text::Tokenizer& tokenizer);

// The learnt special tokens that end the rows, the most frequent first. Behind such a token a row
// may have only line breaks and further special tokens. Rows of `max_tokens` tokens do not count,
// because they may be cut.
std::vector<int32_t> learnt_ends(const TokenDataset& rows, const text::Tokenizer& tokenizer,
                                 int64_t max_tokens);

}  // namespace convoy::data
