// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/encode_file.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "convoy/base/suggest.h"

namespace convoy::data {
namespace {

constexpr size_t kSamplesPerTurn = 32;
constexpr size_t kExplainedIds = 12;

struct Pulled {
  Sample sample;
  int64_t fields_cut = 0;
};

struct Finished {
  int64_t index = 0;
  RowRecord record;
  EncodedRow row;  // only of kept rows
};

// Workers take turns at the reader and encode what they took side by side.
class FileEncoder {
 public:
  FileEncoder(SampleReader& reader, const std::function<EncodedRow(const Sample&)>& encode,
              const TruncationPolicy& policy)
      : reader_(reader), encode_(encode), policy_(policy) {}

  EncodedFile run(int num_threads) {
    std::vector<std::jthread> workers;
    for (int worker = 1; worker < num_threads; ++worker) workers.emplace_back([this] { work(); });
    work();
    workers.clear();  // joins
    if (error_) std::rethrow_exception(error_);
    std::sort(finished_.begin(), finished_.end(),
              [](const Finished& a, const Finished& b) { return a.index < b.index; });
    file_.records.resize(static_cast<size_t>(reader_.rows_seen()));
    for (Finished& finished : finished_) {
      file_.records[static_cast<size_t>(finished.index)] = finished.record;
      if (finished.record.outcome == RowOutcome::Kept)
        file_.rows.push_back(std::move(finished.row));
    }
    return std::move(file_);
  }

 private:
  void work() {
    std::vector<Finished> finished;
    for (std::vector<Pulled> turn = pull(); !turn.empty(); turn = pull())
      for (const Pulled& pulled : turn)
        if (!encode_one(pulled, finished)) break;
    const std::lock_guard lock(mutex_);
    std::move(finished.begin(), finished.end(), std::back_inserter(finished_));
  }

  // Rows are handed out in order, and rows handed out are finished even after an error elsewhere; so the error with the
  // smallest index is the same in every run.
  std::vector<Pulled> pull() {
    std::vector<Pulled> turn;
    const std::lock_guard lock(mutex_);
    try {
      while (!ended_ && turn.size() < kSamplesPerTurn) {
        const int64_t cut_before = reader_.fields_cut();
        std::optional<Sample> sample = reader_.next();
        ended_ = !sample.has_value();
        if (!sample) break;
        turn.push_back({std::move(*sample), reader_.fields_cut() - cut_before});
      }
    } catch (...) {
      keep_error(reader_.rows_seen(), std::current_exception());
    }
    return turn;
  }

  // Returns false after an error.
  bool encode_one(const Pulled& pulled, std::vector<Finished>& finished) {
    const int64_t index = pulled.sample.index;
    try {
      EncodedRow row;
      try {
        row = encode_(pulled.sample);
      } catch (const DataError& error) {
        const std::lock_guard lock(mutex_);
        reader_.report_bad_row(error, index);
        return true;
      }
      row.source_index = index;
      keep_first(pulled.sample);
      finished.push_back(judge(pulled, std::move(row)));
      return true;
    } catch (...) {
      const std::lock_guard lock(mutex_);
      keep_error(index, std::current_exception());
      return false;
    }
  }

  Finished judge(const Pulled& pulled, EncodedRow row) {
    const Sample& sample = pulled.sample;
    Finished finished{
        sample.index,
        {.outcome = RowOutcome::Kept, .own_bos = row.own_bos, .fields_cut = pulled.fields_cut},
        {}};
    const auto tokens = static_cast<int64_t>(row.ids.size());
    const auto supervised = std::count_if(row.supervised.begin(), row.supervised.end(),
                                          [](uint8_t flag) { return flag; });
    if (tokens > policy_.max_tokens && policy_.truncation == Truncation::Drop) {
      finished.record.outcome = RowOutcome::DroppedLong;
      return finished;
    }
    if (tokens > policy_.max_tokens && policy_.truncation == Truncation::Error)
      throw DataError(fmt::format("row {} has {} tokens, more than model.max_seq_len {}",
                                  sample.index + 1, tokens, policy_.max_tokens),
                      {.file = sample.file,
                       .line = sample.line,
                       .hint = "raise it, or choose another data.truncation"});
    finished.record.truncated = truncate_row(row, policy_);
    if (std::find_if(row.supervised.begin(), row.supervised.end(),
                     [](uint8_t flag) { return flag; }) == row.supervised.end()) {
      finished.record.outcome = RowOutcome::Unsupervised;
      explain({sample.line, sample.index, tokens, supervised, std::move(row.ids)});
      return finished;
    }
    finished.row = std::move(row);
    return finished;
  }

  void keep_first(const Sample& sample) {
    const std::lock_guard lock(mutex_);
    if (!file_.first_sample || sample.index < file_.first_sample->index)
      file_.first_sample = sample;
  }

  void explain(UnsupervisedRow row) {
    row.ids.resize(std::min(row.ids.size(), kExplainedIds));
    const std::lock_guard lock(mutex_);
    if (!file_.first_unsupervised || row.index < file_.first_unsupervised->index)
      file_.first_unsupervised = std::move(row);
  }

  // Needs the lock.
  void keep_error(int64_t index, std::exception_ptr error) {
    ended_ = true;
    if (!error_ || index < error_index_) {
      error_ = std::move(error);
      error_index_ = index;
    }
  }

  SampleReader& reader_;
  const std::function<EncodedRow(const Sample&)>& encode_;
  const TruncationPolicy& policy_;
  std::mutex mutex_;  // guards the members below and the reader
  bool ended_ = false;
  std::exception_ptr error_;
  int64_t error_index_ = 0;
  EncodedFile file_;
  std::vector<Finished> finished_;
};

}  // namespace

Truncation truncation_named(const std::string& name) {
  const std::vector<std::string> names = {"keep_start", "keep_end", "drop", "error"};
  const std::vector<Truncation> values = {Truncation::KeepStart, Truncation::KeepEnd,
                                          Truncation::Drop, Truncation::Error};
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    throw ConfigError(fmt::format("`{}` is no truncation{}; known: {}", name,
                                  did_you_mean(name, names), fmt::join(names, ", ")),
                      {.key = "data.truncation"});
  return values[static_cast<size_t>(found - names.begin())];
}

bool truncate_row(EncodedRow& row, const TruncationPolicy& policy) {
  const auto tokens = static_cast<int64_t>(row.ids.size());
  if (tokens <= policy.max_tokens) return false;
  if (policy.truncation == Truncation::KeepEnd) {
    const bool keep_bos = policy.bos_id && row.ids[0] == *policy.bos_id;
    const auto excess = static_cast<std::ptrdiff_t>(tokens - policy.max_tokens);
    const std::ptrdiff_t from = keep_bos ? 1 : 0;
    row.ids.erase(row.ids.begin() + from, row.ids.begin() + from + excess);
    row.supervised.erase(row.supervised.begin() + from, row.supervised.begin() + from + excess);
  } else {
    row.ids.resize(static_cast<size_t>(policy.max_tokens));
    row.supervised.resize(static_cast<size_t>(policy.max_tokens));
  }
  row.supervised[0] = 0;
  return true;
}

EncodedFile encode_file(SampleReader& reader,
                        const std::function<EncodedRow(const Sample&)>& encode,
                        const TruncationPolicy& policy, int num_threads) {
  CONVOY_CHECK(policy.max_tokens >= 2, ConfigError, "model.max_seq_len is {}, wanted at least 2",
               policy.max_tokens);
  return FileEncoder(reader, encode, policy).run(num_threads);
}

}  // namespace convoy::data
