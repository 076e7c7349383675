// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/encoding/encode_file.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "convoy/core/base/suggest.h"
#include "convoy/data/datasets/encoding/ordered_work.h"

namespace convoy::data {
namespace {

constexpr size_t kRowsPerTurn = 32;
constexpr size_t kExplainedIds = 12;

struct Finished {
  PreparedRow prepared;
  // The encoder's DataError for this row, which makes it a bad row.
  std::optional<DataError> refusal;
  std::exception_ptr failure;  // any other error, which ends the run
  RowRecord record;
  EncodedRow row;  // filled for kept rows
  std::optional<UnsupervisedRow> unsupervised;
  RowLosses losses;  // losses of this row only
};

using Turn = std::vector<PulledRow>;
using FinishedTurn = std::vector<Finished>;

class FileEncoder {
 public:
  FileEncoder(SampleReader& reader, const std::function<EncodedRow(const Sample&)>& encode,
              const TruncationPolicy& policy, const TakeRow& take)
      : reader_(reader), encode_(encode), policy_(policy), take_(take) {}

  EncodedFile run(int num_threads) {
    const OrderedWork<Turn, FinishedTurn> steps{
        .pull = [this] { return pull(); },
        .work = [this](Turn turn) { return encode_turn(std::move(turn)); },
        .put = [this](FinishedTurn turn) { put(std::move(turn)); }};
    work_in_order(steps, num_threads);
    return std::move(file_);
  }

 private:
  // Reads the next rows. If an error follows rows that were already read, the next call throws it.
  std::optional<Turn> pull() {
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    Turn turn;
    try {
      while (turn.size() < kRowsPerTurn) {
        std::optional<PulledRow> pulled = reader_.pull();
        if (!pulled) break;
        turn.push_back(std::move(*pulled));
      }
    } catch (...) {
      if (turn.empty()) throw;
      failure_ = std::current_exception();
    }
    if (turn.empty()) return std::nullopt;
    return turn;
  }

  FinishedTurn encode_turn(Turn turn) const {
    FinishedTurn finished;
    finished.reserve(turn.size());
    for (PulledRow& pulled : turn) finished.push_back(encode_one(std::move(pulled)));
    return finished;
  }

  Finished encode_one(PulledRow pulled) const {
    Finished finished;
    finished.prepared = reader_.prepare(std::move(pulled));
    if (finished.prepared.error) return finished;
    try {
      EncodedRow row;
      try {
        row = encode_(finished.prepared.sample);
      } catch (const DataError& error) {
        finished.refusal = error;
        return finished;
      }
      row.source_index = finished.prepared.index;
      judge(finished, std::move(row));
    } catch (...) {
      finished.failure = std::current_exception();
    }
    return finished;
  }

  void judge(Finished& finished, EncodedRow row) const {
    const Sample& sample = finished.prepared.sample;
    finished.losses.add(sample, row);
    finished.record = {.outcome = RowOutcome::Kept,
                       .own_bos = row.own_bos,
                       .own_weights = row.own_weights,
                       .fields_cut = finished.prepared.fields_cut,
                       .is_desirable = row.is_desirable};
    const int64_t tokens = longest_tokens(row);
    if (tokens > policy_.max_tokens && policy_.truncation == Truncation::Drop) {
      finished.record.outcome = RowOutcome::DroppedLong;
      return;
    }
    if (tokens > policy_.max_tokens && policy_.truncation == Truncation::Error)
      throw DataError(fmt::format("row {} has {} tokens, more than model.max_seq_len {}",
                                  sample.index + 1, tokens, policy_.max_tokens),
                      {.file = sample.file,
                       .line = sample.line,
                       .hint = "raise it, or choose another data.truncation"});
    const int64_t supervised = fewest_supervised(row);
    finished.record.truncated = truncate_row(row, policy_);
    if (finished.record.truncated && sample.kind == Sample::Kind::Text)
      finished.losses.texts_cut.add(sample);
    finished.record.first_of_pair = row.first_of_pair;
    const bool equal = finished.record.truncated && has_equal_sides(row);
    if (fewest_supervised(row) > 0 && !equal) {
      finished.row = std::move(row);
      return;
    }
    finished.record.outcome = RowOutcome::Unsupervised;
    if (supervised > 0)
      (equal ? finished.losses.sides_equal : finished.losses.answers_cut).add(sample);
    row.ids.resize(std::min(row.ids.size(), kExplainedIds));
    finished.unsupervised = {sample.line, sample.index, tokens, supervised, std::move(row.ids)};
  }

  void put(FinishedTurn turn) {
    for (Finished& finished : turn) put_one(std::move(finished));
  }

  void put_one(Finished finished) {
    const bool accepted = reader_.accept(finished.prepared);
    if (accepted && finished.failure) std::rethrow_exception(finished.failure);
    if (accepted && finished.refusal)
      reader_.report_bad_row(*finished.refusal, finished.prepared.index);
    if (!accepted || finished.refusal) return take_({}, {});
    file_.losses.add(finished.losses);
    // first_sample is the sample of the first kept row. A dropped row gives it only while there is
    // no kept row.
    const bool is_kept = finished.record.outcome == RowOutcome::Kept;
    if (!file_.first_sample || (is_kept && !has_kept_row_))
      file_.first_sample = std::move(finished.prepared.sample);
    has_kept_row_ = has_kept_row_ || is_kept;
    if (finished.unsupervised && !file_.first_unsupervised)
      file_.first_unsupervised = std::move(finished.unsupervised);
    take_(finished.record, std::move(finished.row));
  }

  SampleReader& reader_;
  const std::function<EncodedRow(const Sample&)>& encode_;
  const TruncationPolicy& policy_;
  const TakeRow& take_;
  std::exception_ptr failure_;
  bool has_kept_row_ = false;
  EncodedFile file_;
};

}  // namespace

Truncation truncation_named(const std::string& name, const std::string& task) {
  const std::vector<std::string> names = {"auto",     "split", "keep_start",
                                          "keep_end", "drop",  "error"};
  const std::vector<Truncation> values = {
      task == "pretrain" ? Truncation::Split : Truncation::KeepStart,
      Truncation::Split,
      Truncation::KeepStart,
      Truncation::KeepEnd,
      Truncation::Drop,
      Truncation::Error};
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    throw ConfigError(fmt::format("`{}` is no truncation{}; known: {}", name,
                                  did_you_mean(name, names), fmt::join(names, ", ")),
                      {.key = "data.truncation"});
  return values[static_cast<size_t>(found - names.begin())];
}

namespace {

// Does nothing for an empty list. `values` otherwise has an entry for each token.
template <class Value>
void erase_range(std::vector<Value>& values, std::ptrdiff_t from, std::ptrdiff_t count) {
  if (!values.empty()) values.erase(values.begin() + from, values.begin() + from + count);
}

}  // namespace

int64_t longest_tokens(const EncodedRow& row) {
  return std::max(row.first_of_pair, std::ssize(row.ids) - row.first_of_pair);
}

int64_t fewest_supervised(const EncodedRow& row) {
  const int64_t all = count_supervised(row);
  if (row.first_of_pair == 0) return all;
  const int64_t first =
      std::count_if(row.supervised.begin(), row.supervised.begin() + row.first_of_pair,
                    [](uint8_t flag) { return flag != 0; });
  return std::min(first, all - first);
}

int64_t shared_tokens(const EncodedRow& chosen, const EncodedRow& rejected) {
  const auto [at, other] =
      std::mismatch(chosen.ids.begin(), chosen.ids.end(), rejected.ids.begin(), rejected.ids.end());
  return at - chosen.ids.begin();
}

bool has_equal_sides(const EncodedRow& row) {
  const auto second = row.ids.begin() + row.first_of_pair;
  return row.first_of_pair > 0 && std::equal(row.ids.begin(), second, second, row.ids.end());
}

bool truncate_row(EncodedRow& row, const TruncationPolicy& policy) {
  if (row.first_of_pair > 0) {
    std::vector<EncodedRow> rows = rows_of_pair(std::move(row));
    const bool first = truncate_row(rows[0], policy);
    const bool second = truncate_row(rows[1], policy);
    row = pair_of_rows(std::move(rows[0]), rows[1]);
    return first || second;
  }
  const auto tokens = static_cast<int64_t>(row.ids.size());
  if (tokens <= policy.max_tokens || policy.truncation == Truncation::Split) return false;
  const bool keeps_end = policy.truncation == Truncation::KeepEnd;
  const bool keeps_bos = policy.bos_id && row.ids[0] == *policy.bos_id;
  const std::ptrdiff_t from = !keeps_end ? policy.max_tokens : keeps_bos ? 1 : 0;
  erase_range(row.ids, from, tokens - policy.max_tokens);
  erase_range(row.supervised, from, tokens - policy.max_tokens);
  erase_range(row.weights, from, tokens - policy.max_tokens);
  row.supervised[0] = 0;
  return true;
}

EncodedFile encode_file(SampleReader& reader,
                        const std::function<EncodedRow(const Sample&)>& encode,
                        const TruncationPolicy& policy, int num_threads, const TakeRow& take) {
  if (policy.max_tokens < 2)
    throw ConfigError(fmt::format("model.max_seq_len is {}, wanted at least 2", policy.max_tokens),
                      {.hint = "set it to 2 or more"});
  return FileEncoder(reader, encode, policy, take).run(num_threads);
}

}  // namespace convoy::data
