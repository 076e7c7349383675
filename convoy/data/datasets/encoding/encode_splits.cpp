// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/encoding/encode_splits.h"

#include "convoy/data/datasets/encoding/encode_sample.h"
#include "convoy/data/datasets/encoding/split_builder.h"
#include "convoy/data/datasets/masks/supervision.h"

namespace convoy::data {
namespace {

std::string show_pieces(const text::Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  std::string text;
  for (const int32_t id : ids)
    text += fmt::format("{}{} `{}`", text.empty() ? "" : ", ", id, tokenizer.piece(id));
  return text;
}

EncodedSplits encode_mix(const EncodeInputs& inputs, Splits wanted) {
  const std::string& unread =
      inputs.data.train_path.empty() ? inputs.data.val_path : inputs.data.train_path;
  if (!unread.empty())
    inputs.log.info(fmt::format("{} is ignored: task mixed reads only `datasets`", unread));
  EncodedSplits mixed;
  std::vector<NamedRows> train;
  std::vector<NamedRows> val;
  int64_t rows = 0;
  for (const settings::MixedDataset& dataset : inputs.datasets) {
    settings::DataSettings data = inputs.data;
    data.train_path = dataset.path;
    data.val_path = dataset.val_path;
    data.test_path.clear();
    data.split = {1 - dataset.val_ratio, dataset.val_ratio, 0};
    data.schema = dataset.schema;
    EncodedSplits splits = encode_splits({.data = data,
                                          .task = dataset.task,
                                          .max_seq_len = inputs.max_seq_len,
                                          .seed = inputs.seed,
                                          .tokenizer = inputs.tokenizer,
                                          .chat_template = inputs.chat_template,
                                          .log = Log(LogLevel::Quiet),
                                          .warns = inputs.warns},
                                         wanted);
    for (SplitReport& report : splits.reports) {
      report.name += " of " + dataset.name;
      inputs.log.info(report_line(report));
      mixed.reports.push_back(std::move(report));
    }
    mixed.policy +=
        fmt::format("{}{}: {}", mixed.policy.empty() ? "" : "\n", dataset.name, splits.policy);
    mixed.mix.push_back({dataset.name, rows, splits.train.num_rows(), dataset.weight});
    rows += splits.train.num_rows();
    train.push_back({dataset.name, std::move(splits.train)});
    if (splits.val.num_rows() > 0) val.push_back({dataset.name, std::move(splits.val)});
  }
  mixed.train = TokenDataset::joined(std::move(train));
  mixed.val = TokenDataset::joined(std::move(val));
  return mixed;
}

}  // namespace

EncodedSplits encode_splits(const EncodeInputs& inputs, Splits wanted) {
  if (inputs.task == "mixed") return encode_mix(inputs, wanted);
  const SampleEncoder encoder(inputs.tokenizer, inputs.chat_template,
                              Supervision::from(inputs.data));
  const std::string template_hash =
      inputs.chat_template == nullptr
          ? ""
          : inputs.chat_template->content_hash() + inputs.chat_template->clock().words();
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
       .log = inputs.log,
       .warns = inputs.warns},
      wanted);
}

}  // namespace convoy::data
