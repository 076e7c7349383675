// SPDX-License-Identifier: Apache-2.0
#include "convoy/recipes/score.h"

#include "convoy/base/error.h"
#include "convoy/data/encoded_rows.h"
#include "convoy/data/supervise_name.h"
#include "convoy/device/threads.h"
#include "convoy/kernels/cross_entropy/linear_cross_entropy.h"
#include "convoy/recipes/loaded_model.h"
#include "convoy/recipes/row_output.h"
#include "convoy/settings/template_kwargs.h"
#include "convoy/train/token_batch.h"

namespace convoy::recipes {
namespace {

// Sums the losses of each row of one batch and writes them out.
void write_scores(nn::CausalLm& model, const std::vector<data::EncodedRow>& rows,
                  RowOutput& output) {
  const data::TokenDataset dataset = data::TokenDataset::from_rows(rows);
  std::vector<int64_t> order(rows.size());
  for (size_t row = 0; row < rows.size(); ++row) order[row] = static_cast<int64_t>(row);
  const train::LabelledBatch batch = train::assemble_batch(dataset, order);
  const at::Tensor hidden_TD = model.hidden_states(batch.tokens, {});
  const auto losses =
      kernels::linear_token_losses(hidden_TD, model.head().weight(), batch.labels_T);
  for (size_t row = 0; row < rows.size(); ++row) {
    const int64_t begin = batch.tokens.row_starts[row];
    const int64_t end = batch.tokens.row_starts[row + 1];
    const double nll = losses.nll_T.slice(0, begin, end).sum(at::kDouble).item<double>();
    output.add({{"index", rows[row].source_index},
                {"nll", nll},
                {"tokens", dataset.supervised_tokens(static_cast<int64_t>(row))}});
  }
}

void fit_length(data::EncodedRow& row, const data::Sample& sample, int64_t max_seq_len,
                int64_t max_positions) {
  const auto length = static_cast<int64_t>(row.ids.size());
  if (max_seq_len > 0 && length > max_seq_len) {
    row.ids.resize(static_cast<size_t>(max_seq_len));
    row.supervised.resize(static_cast<size_t>(max_seq_len));
  } else if (max_seq_len == 0 && length > max_positions) {
    throw DataError(
        fmt::format("the row has {} tokens, the model has {} positions", length, max_positions),
        {.file = sample.file, .line = sample.line, .hint = "cut rows with --max-seq-len"});
  }
}

}  // namespace

void score(const settings::ModelFlags& model_flags, const settings::ScoreFlags& flags,
           const Log& log) {
  CONVOY_CHECK(!flags.data.empty(), ConfigError, "wanted --data FILE");
  device::share_cpu_threads(1);
  const LoadedModel loaded = load_model(model_request(model_flags, flags.template_path), log);
  const at::NoGradGuard no_grad;
  const data::SampleEncoder encoder(loaded.tokenizer, loaded.template_or_null(),
                                    data::supervise_named(flags.supervise));
  data::EncodedRows encoded(
      flags.data,
      {.schema = flags.schema,
       .text_field = flags.text_field,
       .template_kwargs = settings::template_kwargs(flags.template_kwargs, "--template-kwargs")},
      data::bad_rows_named(flags.bad_rows), data::RowUse::Learn,
      [&](const data::Sample& sample) { return encoder.encode(sample); });
  RowOutput output(flags.output);
  std::vector<data::EncodedRow> rows;
  int64_t num_rows = 0;
  while (std::optional<data::EncodedSample> next = encoded.next()) {
    fit_length(next->row, next->sample, flags.max_seq_len, loaded.model->max_positions());
    rows.push_back(std::move(next->row));
    ++num_rows;
    if (static_cast<int64_t>(rows.size()) < flags.batch_size) continue;
    write_scores(*loaded.model, rows, output);
    rows.clear();
  }
  if (!rows.empty()) write_scores(*loaded.model, rows, output);
  encoded.finish(log);
  output.finish();
  log.info(fmt::format("scored {} rows", num_rows));
}

}  // namespace convoy::recipes
