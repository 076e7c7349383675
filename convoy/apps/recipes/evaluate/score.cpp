// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/evaluate/score.h"

#include <numeric>

#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/apps/recipes/rank_share.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/io/row_output.h"
#include "convoy/core/settings/template_kwargs.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/data/datasets/encoding/encoded_rows.h"
#include "convoy/data/datasets/masks/supervision.h"
#include "convoy/train/loop/evaluation.h"

namespace convoy::recipes {
namespace {

// Batches of each rank after which the ranks gather their rows for writing.
constexpr int64_t kBatchesPerRound = 16;

void fit_length(data::EncodedRow& row, const data::Sample& sample, int64_t max_seq_len,
                int64_t max_positions) {
  const auto length = static_cast<int64_t>(row.ids.size());
  if (max_seq_len > 0 && length > max_seq_len) {
    row.ids.resize(static_cast<size_t>(max_seq_len));
    row.supervised.resize(static_cast<size_t>(max_seq_len));
    if (!row.weights.empty()) row.weights.resize(static_cast<size_t>(max_seq_len));
  } else if (max_seq_len == 0 && length > max_positions) {
    throw DataError(
        fmt::format("the row has {}, the model has {}", counted(length, "token"),
                    counted(max_positions, "position")),
        {.file = sample.file, .line = sample.line, .hint = "cut rows with --max-seq-len"});
  }
}

// Every rank receives all rows, and computes every n-th batch as a whole.
class Scorer {
 public:
  Scorer(RankShare& share, nn::CausalLm& model, const settings::ScoreFlags& flags,
         telemetry::Progress& progress)
      : share_(share), model_(model), batch_size_(flags.batch_size), progress_(progress) {
    if (share.leads()) output_.emplace(flags.output);
  }

  void take(data::EncodedRow row) {
    batch_.push_back(std::move(row));
    if (static_cast<int64_t>(batch_.size()) == batch_size_) end_batch();
  }

  // Returns the number of rows of all ranks.
  int64_t finish() {
    end_batch();
    share_.wait_for_all(num_rows_, [this](int64_t all) { progress_.update({.done = all}); });
    write();
    if (output_) output_->finish();
    progress_.finish();
    share_.finish();
    return num_rows_;
  }

 private:
  void end_batch() {
    if (share_.owns(num_batches_) && !batch_.empty()) score_batch();
    num_rows_ += static_cast<int64_t>(batch_.size());
    ++num_batches_;
    batch_.clear();
    // A single rank writes rows as they are computed.
    if (num_batches_ % (share_.size() == 1 ? 1 : share_.size() * kBatchesPerRound) == 0) write();
  }

  void score_batch() {
    std::vector<int64_t> order(batch_.size());
    std::iota(order.begin(), order.end(), int64_t{0});
    const std::vector<train::RowLoss> losses =
        train::row_losses(model_, data::TokenDataset::from_rows(batch_), order);
    for (size_t row = 0; row < losses.size(); ++row) {
      nlohmann::ordered_json line = {{"index", batch_[row].source_index},
                                     {"nll", losses[row].nll},
                                     {"tokens", losses[row].supervised_tokens}};
      if (!batch_[row].weights.empty()) line["weight"] = losses[row].weight;
      lines_.emplace_back(num_rows_ + static_cast<int64_t>(row), io::line_of(line));
    }
    num_scored_ += static_cast<int64_t>(losses.size());
    const int64_t done = share_.report_done(num_scored_);
    if (share_.leads()) progress_.update({.done = done});
  }

  void write() {
    gather_in_order(share_.group(), lines_, num_written_, num_rows_,
                    [this](const std::string& line) { output_->add(line); });
    lines_.clear();
    num_written_ = num_rows_;
  }

  RankShare& share_;
  nn::CausalLm& model_;
  int64_t batch_size_;
  telemetry::Progress& progress_;
  std::optional<io::RowOutput> output_;  // on the leading rank
  std::vector<data::EncodedRow> batch_;
  std::vector<PlacedLine> lines_;  // scored on this rank, not yet written
  int64_t num_batches_ = 0;        // number of ended batches
  int64_t num_rows_ = 0;           // rows in the ended batches
  int64_t num_scored_ = 0;         // rows scored on this rank
  int64_t num_written_ = 0;
};

}  // namespace

void score(const settings::ModelFlags& model_flags, const settings::ScoreFlags& flags,
           const settings::RankFlags& ranks, const Log& given_log) {
  if (flags.data.empty())
    throw ConfigError("wanted --data FILE", {.key = "data", .hint = "such as --data rows.jsonl"});
  const Log log = log_of_rank(ranks.ranks_folder, given_log);
  RankShare share(ranks);
  const LoadedModel loaded =
      load_model(model_request(model_flags, flags.template_path, share.rank_device()), log);
  share.follow_free_cores(log);
  const data::SampleEncoder encoder(loaded.tokenizer, loaded.template_or_null(),
                                    data::Supervision::named(flags.supervise));
  data::EncodedRows encoded(
      flags.data,
      {.schema = flags.schema,
       .text_field = flags.text_field,
       .template_kwargs = settings::template_kwargs(flags.template_kwargs, "--template-kwargs")},
      data::bad_rows_named(flags.bad_rows), data::RowUse::Learn,
      [&](const data::Sample& sample) { return encoder.encode(sample); });
  telemetry::ProgressOptions options{.label = "score", .unit = "row"};
  // Rows on stdout already show the progress.
  if (log.level() == LogLevel::Quiet || flags.output.empty())
    options.style = telemetry::ProgressStyle::None;
  telemetry::Progress progress(options);
  Scorer scorer(share, *loaded.model, flags, progress);
  for (int64_t taken = 0; flags.limit == 0 || taken < flags.limit; ++taken) {
    std::optional<data::EncodedSample> next = encoded.next();
    if (!next) break;
    fit_length(next->row, next->sample, flags.max_seq_len, loaded.model->max_positions());
    scorer.take(std::move(next->row));
  }
  encoded.finish(log);
  log.info(fmt::format("scored {}", counted(scorer.finish(), "row")));
}

}  // namespace convoy::recipes
