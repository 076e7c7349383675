// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/encode_splits.h"

#include "convoy/data/encode_sample.h"
#include "convoy/data/split_builder.h"
#include "convoy/data/supervise_name.h"

namespace convoy::data {
namespace {

std::string show_pieces(const text::Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  std::string text;
  for (const int32_t id : ids)
    text += fmt::format("{}{} `{}`", text.empty() ? "" : ", ", id, tokenizer.piece(id));
  return text;
}

}  // namespace

EncodedSplits encode_splits(const EncodeInputs& inputs, Splits wanted) {
  const SampleEncoder encoder(inputs.tokenizer, inputs.chat_template,
                              supervise_named(inputs.data.supervise));
  const std::string template_hash =
      inputs.chat_template == nullptr ? "" : inputs.chat_template->content_hash();
  return build_splits(
      {.data = inputs.data,
       .task = inputs.task,
       .max_seq_len = inputs.max_seq_len,
       .seed = inputs.seed,
       .encode = [&](const Sample& sample) { return encoder.encode(sample); },
       .policy = [&](const Sample& sample) { return encoder.policy(sample); },
       .show = [&](const std::vector<int32_t>& ids) { return show_pieces(inputs.tokenizer, ids); },
       .bos_id = inputs.tokenizer.bos_id(),
       .encoder_hash = inputs.tokenizer.content_hash() + template_hash,
       .log = inputs.log},
      wanted);
}

}  // namespace convoy::data
