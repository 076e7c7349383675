// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/memory/auto_batch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/machine/device/memory.h"
#include "convoy/machine/device/tensor_memory.h"
#include "convoy/train/comm/exchange.h"

namespace convoy::recipes {
namespace {

// A step with fewer tokens than this takes no less memory.
constexpr int64_t kFewTokens = 16;

int64_t rounded_up(double count) {
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(count)));
}

std::string bound_text(const std::string& bound) {
  if (bound == "memory") return "as many as memory holds";
  if (bound == "the rows") return "all that the data and the step have";
  if (bound == "speed") return "more bring no more tokens/s";
  return fmt::format("no more, so that an epoch has {} steps (train.batch_size=N for larger ones)",
                     kLeastStepsPerEpoch);
}

// Leaves a part of the limit for allocations outside the steps: evaluations, files, records.
int64_t without_rest(int64_t limit_bytes) {
  constexpr int64_t kRestBytes = 6 << 20;
  return limit_bytes - limit_bytes / 128 - kRestBytes;
}

// Twice the size must be faster by this factor to pay for its memory.
constexpr double kLeastGain = 1.05;

// Extra share of memory: a long run needs a little more memory than a few of its steps.
constexpr double kSlackOfSteps = 0.015;

class Search {
 public:
  Search(const BatchSearch& parts, const Log& log)
      : parts_(parts), log_(log), most_rows_(parts.most_rows.rows) {}
  std::optional<BatchChoice> run();

 private:
  // Likely::Yes for a size that may become the run's batch size.
  enum class Likely { No, Yes };
  struct Candidate {
    int64_t rows = 0;  // 0: a part of a row
    data::BatchPlan::Largest largest;
  };

  void read_limit();
  int64_t allowed_bytes() const;
  sizing::MemoryPlan formula(int64_t tokens) const;
  Candidate candidate(int64_t rows);
  static Candidate part_of(Candidate candidate) {
    candidate.rows = 0;
    return candidate;
  }
  Candidate most_within(int64_t tokens);
  BatchProbe::Rows encoded(const std::vector<int64_t>& rows) const;
  static BatchProbe::Rows beginning_of(const BatchProbe::Rows& rows, int64_t tokens);
  std::vector<BatchProbe::Rows> steps_of(const Candidate& candidate, int64_t tokens,
                                         Likely likely) const;
  bool measure(const Candidate& candidate, int64_t tokens, Likely likely);
  void lose_memory(int64_t tokens);
  void report(const Candidate& candidate, int64_t tokens) const;
  int64_t most_rows_to_try() const;
  [[noreturn]] void refuse(int64_t tokens);
  bool is_worth(const Candidate& next) const;
  void attempt(Candidate next, Likely likely);
  void measure_least(const Candidate& one_row);
  void use_last_room();
  BatchChoice chosen();

  const BatchSearch& parts_;
  const Log& log_;
  int64_t held_bytes_ = 0;
  // Bytes of the limit that turned out not to be free when the device ran out of memory.
  int64_t lost_bytes_ = 0;
  sizing::PeakLine line_{1};      // peaks of owned memory, the largest of all ranks
  sizing::PeakLine resident_{1};  // peaks of resident memory, the largest of all ranks
  int64_t most_rows_ = 1;
  Candidate best_;
  std::optional<data::BatchPlan> plan_;
  int64_t longest_row_tokens_ = 1;
  double tokens_per_second_ = 0;  // with the size that was measured last
  bool gains_ = true;             // false: the last size brought no more speed
  bool stopped_ = false;          // a stop was requested
  BatchChoice choice_;
};

// The ranks of a host read the free memory while none of them allocates, and share it.
void Search::read_limit() {
  device::forget_kept_tensor_memory();
  parts_.group.barrier();
  const int64_t held = device::owned_memory_bytes(parts_.device);
  const int64_t left = device::usable_rank_memory_bytes(parts_.device, parts_.processes_on_host);
  parts_.group.barrier();
  struct Memory {
    int64_t held = 0;
    int64_t left = 0;
  };
  const std::vector<Memory> ranks = comm::exchange(parts_.group, Memory{held, left});
  // The limit for all ranks: the largest use of a rank, plus the least memory that a rank has left.
  int64_t least_left = ranks.front().left;
  for (const Memory& rank : ranks) {
    held_bytes_ = std::max(held_bytes_, rank.held);
    least_left = std::min(least_left, rank.left);
  }
  if (least_left <= 0)
    throw ConfigError(
        "the memory limit of a rank is unknown here, so train.batch_size: auto cannot choose a "
        "size",
        {.key = "train.batch_size", .hint = "write a number"});
  choice_.limit_bytes = held_bytes_ + least_left;
}

int64_t Search::allowed_bytes() const {
  return without_rest(choice_.limit_bytes) - lost_bytes_ -
         std::llround(kSlackOfSteps * static_cast<double>(choice_.limit_bytes - held_bytes_));
}

sizing::MemoryPlan Search::formula(int64_t tokens) const {
  sizing::MemoryQuestion question = parts_.formula;
  question.micro_batch_tokens = tokens;
  return sizing::plan_memory(question, parts_.sharing);
}

Search::Candidate Search::candidate(int64_t rows) {
  plan_.emplace(parts_.plan_of(rows));
  return {rows, plan_->largest_micro_batch(0, parts_.steps_of(*plan_))};
}

// The largest candidate whose micro-batches have at most `tokens`; zero rows when not even one row
// fits. Tokens grow nearly in proportion with rows.
Search::Candidate Search::most_within(int64_t tokens) {
  Candidate fits;
  const int64_t most_rows = most_rows_to_try();
  if (most_rows < 1) return fits;
  int64_t too_many = most_rows + 1;
  int64_t rows = std::clamp<int64_t>(tokens / longest_row_tokens_, 1, most_rows);
  while (rows > fits.rows && rows < too_many) {
    Candidate tried = candidate(rows);
    const double per_row =
        static_cast<double>(std::max<int64_t>(tried.largest.tokens, 1)) / static_cast<double>(rows);
    if (tried.largest.tokens <= tokens)
      fits = std::move(tried);
    else
      too_many = rows;
    const auto next = static_cast<int64_t>(static_cast<double>(tokens) / per_row);
    rows = std::clamp(next, fits.rows + 1, std::max(fits.rows + 1, too_many - 1));
  }
  return fits;
}

BatchProbe::Rows Search::encoded(const std::vector<int64_t>& rows) const {
  const data::TokenDataset& data = plan_->dataset();
  BatchProbe::Rows encoded;
  for (const int64_t row : rows) {
    const auto ids = data.ids(row);
    const auto supervised = data.supervised(row);
    encoded.push_back(
        {.ids = {ids.begin(), ids.end()}, .supervised = {supervised.begin(), supervised.end()}});
  }
  return encoded;
}

// Cuts a micro-batch to its first `tokens` tokens. Supervises all of them, because a step needs a
// loss.
BatchProbe::Rows Search::beginning_of(const BatchProbe::Rows& rows, int64_t tokens) {
  BatchProbe::Rows begin;
  auto left = static_cast<size_t>(tokens);
  for (const data::EncodedRow& row : rows) {
    if (left < 2) break;
    begin.push_back(row);
    begin.back().ids.resize(std::min(row.ids.size(), left));
    begin.back().supervised.assign(begin.back().ids.size(), 1);
    begin.back().supervised[0] = 0;
    left -= begin.back().ids.size();
  }
  return begin;
}

// The micro-batches to measure: the largest micro-batch of the run. For a size that may become the
// run's batch size, also the run's first micro-batch, and the largest again. `candidate` is the
// size that was built last, or a part of one row or block.
std::vector<BatchProbe::Rows> Search::steps_of(const Candidate& candidate, int64_t tokens,
                                               Likely likely) const {
  BatchProbe::Rows largest = encoded(candidate.largest.rows);
  if (candidate.rows == 0) return {beginning_of(largest, tokens)};
  if (likely == Likely::No) return {std::move(largest)};
  BatchProbe::Rows first = encoded(plan_->rows({0, 0}, 0, 0));
  return {largest, std::move(first), largest};
}

// Lowers the limit after memory ran out: the device was full earlier than it had reported.
void Search::lose_memory(int64_t tokens) {
  const int64_t full_bytes = line_.predict(tokens) - choice_.limit_bytes / 20;
  lost_bytes_ += std::max<int64_t>(allowed_bytes() - full_bytes, 0);
}

void Search::report(const Candidate& candidate, int64_t tokens) const {
  const std::string size = candidate.rows > 0 ? fmt::format("batch size {}", candidate.rows)
                                              : fmt::format("{} tokens of a row", tokens);
  log_.info(fmt::format("{}: {:.0f} tokens/s, {}", size, tokens_per_second_,
                        telemetry::bytes_text(line_.peaks().back().bytes)));
}

// Returns false when memory ran out or a stop was requested.
bool Search::measure(const Candidate& candidate, int64_t tokens, Likely likely) {
  if (candidate.rows > 0 && plan_->config().batch_size != candidate.rows)
    plan_.emplace(parts_.plan_of(candidate.rows));
  const auto measured = parts_.probe.measure(steps_of(candidate, tokens, likely));
  if (!measured) {
    stopped_ = parts_.probe.anyone_stops();
    if (!stopped_) lose_memory(tokens);
    return false;
  }
  sizing::MeasuredPeak owned{.tokens = tokens};
  sizing::MeasuredPeak resident{.tokens = tokens};
  for (const device::PeakMemory& rank : measured->peaks) {
    owned.bytes = std::max(owned.bytes, rank.owned_bytes);
    resident.bytes = std::max(resident.bytes, rank.resident_bytes);
  }
  line_.add(owned);
  resident_.add(resident);
  tokens_per_second_ = measured->tokens_per_second;
  report(candidate, tokens);
  return true;
}

void Search::refuse(int64_t tokens) {
  throw ConfigError(
      fmt::format(
          "train.batch_size: auto: a micro-batch of one row, {} tokens, needs about {}, and "
          "a rank may take {}",
          tokens, telemetry::bytes_text(line_.predict(tokens)),
          telemetry::bytes_text(allowed_bytes())),
      {.key = "train.batch_size",
       .hint = "lower model.max_seq_len, set train.gradient_checkpointing: true, share the state "
               "(parallel.strategy=zero3 with more ranks), or train an adapter"});
}

// Returns false for only a few more rows, which are not worth a measurement.
bool Search::is_worth(const Candidate& next) const {
  return next.rows > best_.rows && 32 * (next.rows - best_.rows) >= best_.rows;
}

// When speed counts, a size is at most doubled, so that a size without a gain costs little time.
int64_t Search::most_rows_to_try() const {
  if (!parts_.ends_without_gain || best_.rows == 0) return most_rows_;
  return std::min(most_rows_, 2 * best_.rows);
}

// Measures a size. It becomes the choice if it fits and, when speed counts, is faster. A size that
// does not fit bounds the choice.
void Search::attempt(Candidate next, Likely likely) {
  const bool fits =
      measure(next, next.largest.tokens, likely) && line_.peaks().back().bytes <= allowed_bytes();
  if (!fits) {
    most_rows_ = next.rows - 1;
    return;
  }
  gains_ = !parts_.ends_without_gain || best_.rows == 0 ||
           tokens_per_second_ >= kLeastGain * choice_.tokens_per_second;
  if (!gains_) return;
  choice_.owned_bytes = line_.peaks().back().bytes;
  choice_.measured_bytes = resident_.peaks().back().bytes;
  choice_.tokens_per_second = tokens_per_second_;
  best_ = std::move(next);
}

// Measures the first peak, with a nearly empty micro-batch.
void Search::measure_least(const Candidate& one_row) {
  const double per_token =
      static_cast<double>(formula(8192).total_bytes() - formula(4096).total_bytes()) / 4096;
  line_ = resident_ = sizing::PeakLine(std::max(per_token, 1.0));
  const int64_t few = std::min(kFewTokens, one_row.largest.tokens);
  // The optimizer's values and states are already in memory.
  const sizing::MemoryPlan first = formula(few);
  const int64_t first_bytes = held_bytes_ + first.packed_bytes + first.gradient_bytes +
                              first.exchange_bytes + first.activation_bytes + first.head_bytes;
  if (first_bytes > allowed_bytes()) line_.add({.tokens = few, .bytes = first_bytes});
  if (first_bytes > allowed_bytes() || (!measure(part_of(one_row), few, Likely::No) && !stopped_))
    refuse(one_row.largest.tokens);
}

std::optional<BatchChoice> Search::run() {
  read_limit();
  const Candidate one = candidate(1);
  const int64_t row_tokens = longest_row_tokens_ = std::max<int64_t>(one.largest.tokens, 1);
  measure_least(one);
  while (gains_ && !stopped_) {
    const int64_t tokens = line_.safe_tokens(allowed_bytes());
    Candidate next = most_within(tokens);
    if (is_worth(next)) {
      const bool is_likely =
          parts_.ends_without_gain || next.rows == most_rows_ || tokens < line_.reach_tokens();
      attempt(std::move(next), is_likely ? Likely::Yes : Likely::No);
    } else if (best_.rows == 0 && next.rows == 0 &&
               10 * tokens > 11 * line_.peaks().back().tokens) {
      measure(part_of(one), std::min(tokens, row_tokens - 1), Likely::No);
    } else {
      break;
    }
  }
  if (gains_ && !stopped_) use_last_room();
  if (stopped_) return std::nullopt;
  if (best_.rows == 0) refuse(row_tokens);
  return chosen();
}

void Search::use_last_room() {
  Candidate next = most_within(line_.tokens_within(allowed_bytes()));
  if (is_worth(next)) attempt(std::move(next), Likely::Yes);
}

BatchChoice Search::chosen() {
  sizing::PeakLine smaller(1);
  for (const sizing::MeasuredPeak& peak : resident_.peaks())
    if (peak.tokens < best_.largest.tokens) smaller.add(peak);
  choice_.batch_rows = std::max<int64_t>(best_.rows, 1);
  choice_.bound = !gains_                               ? "speed"
                  : best_.rows == parts_.most_rows.rows ? parts_.most_rows.bound
                                                        : "memory";
  choice_.predicted_bytes =
      smaller.peaks().size() > 1 ? smaller.predict(best_.largest.tokens) : choice_.measured_bytes;
  choice_.curvature = line_.curvature();
  choice_.peaks = line_.peaks();
  return choice_;
}

}  // namespace

int64_t BatchItems::most_in_step(const settings::TrainingSettings& wished) const {
  if (wished.steps > 0 || wished.global_batch_size > 0) return std::numeric_limits<int64_t>::max();
  return std::max<int64_t>(1, count / (kLeastStepsPerEpoch * ranks));
}

bool settle_batch(const settings::TrainingSettings& wished, int64_t batch_rows,
                  const BatchItems& items, settings::TrainingSettings& train) {
  train.batch_size = batch_rows;
  train.auto_find_batch_size = false;
  if (!wished.grad_accum.is_auto()) return false;
  train.grad_accum = 0;
  if (wished.global_batch_size > 0) return false;
  const double at_once = static_cast<double>(batch_rows) * items.mean_tokens;
  const double target = static_cast<double>(wished.target_tokens_per_device_step);
  const int64_t wanted = std::max<int64_t>(1, std::llround(target / std::max(at_once, 1.0)));
  const int64_t most = std::max<int64_t>(1, items.most_in_step(wished) / batch_rows);
  train.grad_accum = std::min(wanted, most);
  return wanted > most;
}

RowLimit most_batch_rows(const settings::TrainingSettings& wished, const BatchItems& items) {
  RowLimit most{std::max<int64_t>(1, (items.count + items.ranks - 1) / items.ranks), "the rows"};
  if (wished.global_batch_size > 0)
    most.rows = std::min(most.rows, (wished.global_batch_size + items.ranks - 1) / items.ranks);
  else if (wished.grad_accum.is_auto())
    most.rows =
        std::min(most.rows, rounded_up(static_cast<double>(wished.target_tokens_per_device_step) /
                                       std::max(items.mean_tokens, 1.0)));
  if (!wished.batch_size.is_auto()) {
    most.rows =
        std::min(most.rows, wished.batch_rows());  // auto_find_batch_size reduces this number
    return most;
  }
  const int64_t accumulation = wished.grad_accum.is_auto() ? 1 : wished.accumulation();
  const int64_t of_epoch =
      std::max<int64_t>(1, items.most_in_step(wished) / std::max<int64_t>(1, accumulation));
  return of_epoch < most.rows ? RowLimit{of_epoch, "the epoch"} : most;
}

void report_small_steps(const settings::TrainingSettings& settled, const Log& log) {
  log.info(fmt::format(
      "grad_accum auto: {}, so that an epoch has {} steps or more; for the {} tokens a step of "
      "target_tokens_per_device_step write a number",
      settled.accumulation(), kLeastStepsPerEpoch, settled.target_tokens_per_device_step));
}

std::string BatchChoice::text() const {
  return fmt::format(
      "batch_size auto: {}, {}; {} {} of {} ({} measured; with mapped files {} predicted, {} "
      "measured)",
      counted(batch_rows, "row"), bound_text(bound), batch_rows == 1 ? "it takes" : "they take",
      telemetry::bytes_text(owned_bytes), telemetry::bytes_text(limit_bytes),
      counted(std::ssize(peaks), "size"), telemetry::bytes_text(predicted_bytes),
      telemetry::bytes_text(measured_bytes));
}

nlohmann::ordered_json BatchChoice::to_json() const {
  nlohmann::ordered_json measured = nlohmann::ordered_json::array();
  for (const sizing::MeasuredPeak& peak : peaks)
    measured.push_back({{"tokens", peak.tokens}, {"bytes", peak.bytes}});
  return {{"batch_size", batch_rows},
          {"bound", bound},
          {"limit_bytes", limit_bytes},
          {"owned_bytes", owned_bytes},
          {"predicted_bytes", predicted_bytes},
          {"measured_bytes", measured_bytes},
          {"tokens_per_second", tokens_per_second},
          {"curvature", curvature},
          {"peaks", measured}};
}

std::optional<BatchChoice> choose_batch_rows(const BatchSearch& search, const Log& log) {
  return Search(search, log).run();
}

}  // namespace convoy::recipes
