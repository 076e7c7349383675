// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/workers/row_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <unordered_map>

#include "convoy/core/base/error.h"
#include "convoy/farm/process/ledger/finished_rows.h"
#include "convoy/farm/process/ledger/ledger_record.h"
#include "convoy/farm/process/ledger/row_records.h"
#include "convoy/farm/workers/worker.h"

namespace convoy::process {
namespace {

using Clock = std::chrono::steady_clock;
using jobs::Lease;

constexpr size_t kMostUnkept = 256;
constexpr std::chrono::milliseconds kIdle{50};
constexpr std::chrono::seconds kTellEvery{1};
// A row that two workers held when they died runs alone: if the third worker dies too, this row is
// the cause.
constexpr int kSuspectAttempt = 3;

struct HeldRow {
  Lease lease;
  InputRow input;
  std::vector<KeptStep> kept;
  std::map<std::string, int64_t> requests;  // requests in the engine, by step
  std::map<std::string, int> failed_tries;  // number of failed tries, by step
  std::map<std::string, int> lost_texts;    // number of lost texts, by step
  RowCost cost;
  bool begun = false;
  bool finished = false;  // the next keep() hands the row in
};

class Worker : public workers::WorkSource {
 public:
  Worker(const RowWorkerOptions& options, const RowRun& run, const RowProgram& program,
         TextEngine& engine, jobs::JobStore& store)
      : options_(options),
        run_(run),
        program_(program),
        engine_(engine),
        store_(store),
        writer_(run, options.name),
        reader_(run) {}

  RowWorkerFigures run() {
    workers::run_loop({.name = options_.name,
                       .groups = {run_.group},
                       .lease = options_.lease,
                       .stop_wanted = options_.stop_wanted},
                      *this, store_);
    tell_now();
    return figures_;
  }

 private:
  struct Request {
    int64_t task = 0;
    std::string key;
  };
  struct StageTokens {
    int64_t prompt = 0;
    int64_t made = 0;
  };

  bool claim() override {
    if (Clock::now() >= next_claim_) claim_rows(wanted_rows());
    return !rows_.empty();
  }

  void compute() override {
    begin_rows();
    std::vector<TextResult> ended;
    try {
      ended = engine_.step();
    } catch (...) {
      keep();  // finished texts must not be lost
      throw;
    }
    for (TextResult& result : ended) take(std::move(result));
  }

  void complete(bool last) override {
    if (last || keep_is_due()) keep();
    if (last) drop_all();
    tell();
  }

  void idle() override { tell(); }

  std::vector<Lease> held() const override {
    std::vector<Lease> leases;
    for (const auto& [task, row] : rows_) leases.push_back(row.lease);
    return leases;
  }

  // Completions of a lost row do not count.
  void lose(const Lease& lease) override { give_up(lease.task); }

  int64_t num_held() const { return static_cast<int64_t>(rows_.size()); }

  int64_t num_unfinished() const { return num_held() - static_cast<int64_t>(completions_.size()); }

  // The number of further rows that this worker claims now. Some rows are claimed ahead of the rows
  // in flight, so that no slot of the engine waits for the store. A worker claims no more than its
  // share of the open rows, so that the last rows do not all wait for one worker.
  int64_t wanted_rows() {
    if (!suspects_.empty() || rows_.contains(alone_)) return 0;
    const int64_t ahead = std::max<int64_t>(1, options_.rows_in_flight / 8);
    const int64_t free = options_.rows_in_flight + ahead - num_unfinished();
    const int64_t at_work = options_.rows_in_flight * options_.num_workers;
    if (free <= 0 || (free < ahead && num_open_ > 2 * at_work)) return 0;
    num_open_ = store_.count_open(run_.group, 2 * at_work + 1);
    const int64_t share = (num_open_ + options_.num_workers - 1) / options_.num_workers;
    const int64_t least = num_unfinished() == 0 ? 1 : 0;
    return std::min(free, std::max(share - num_unfinished(), least));
  }

  void claim_rows(int64_t wanted) {
    if (wanted <= 0) return;
    const std::vector<Lease> leases = store_.claim({.group = run_.group,
                                                    .owner = options_.name,
                                                    .max_ranges = wanted,
                                                    .lease = options_.lease});
    if (static_cast<int64_t>(leases.size()) < wanted) next_claim_ = Clock::now() + kIdle;
    if (leases.empty()) return;
    std::vector<int64_t> tasks;
    for (const Lease& lease : leases) {
      give_up(lease.task);
      HeldRow& row = rows_[lease.task];
      row.lease = lease;
      row.input = read_input(reader_, lease.parameters);
      tasks.push_back(lease.task);
    }
    for (const jobs::Note& note : store_.notes(tasks)) read_back(rows_.at(note.task), note);
    for (const Lease& lease : leases)
      (lease.attempt < kSuspectAttempt ? ready_ : suspects_).push_back(lease.task);
    if (!suspects_.empty()) tell_now();
  }

  void begin_rows() {
    while (!ready_.empty() && num_begun_ < options_.rows_in_flight) {
      const int64_t task = ready_.front();
      ready_.pop_front();
      begin(rows_.at(task));
    }
    while (!suspects_.empty() && num_held() == static_cast<int64_t>(suspects_.size())) {
      alone_ = suspects_.front();
      suspects_.pop_front();
      tell_now();
      begin(rows_.at(alone_));
    }
  }

  void begin(HeldRow& row) {
    row.begun = true;
    ++num_begun_;
    advance(row);
  }

  void read_back(HeldRow& row, const jobs::Note& note) {
    try {
      KeptStep step =
          decode_text(row.input.index, reader_.read(parse_place(note.payload), RecordKind::Text));
      if (has(row, step.key)) return;
      ++figures_.texts_read_back;
      add_text(row, std::move(step));
    } catch (const DataError&) {
      // A text that cannot be read is generated again under another key, because the store has a
      // note with this key.
      ++row.lost_texts[note.key.substr(0, note.key.find_first_of("!~"))];
      ++figures_.texts_lost;
    }
  }

  static bool has(const HeldRow& row, const std::string& key) {
    return std::any_of(row.kept.begin(), row.kept.end(),
                       [&](const KeptStep& step) { return step.key == key; });
  }

  bool is_final(const KeptStep& step) const {
    return step.result.finish != TextFinish::Error || !step.result.error_may_pass ||
           step.tries >= options_.max_tries;
  }

  void add_text(HeldRow& row, KeptStep step) {
    ++row.cost.texts;
    row.cost.prompt_tokens += step.result.prompt_tokens;
    row.cost.new_tokens += step.result.new_tokens;
    if (is_final(step))
      row.kept.push_back(std::move(step));
    else
      row.failed_tries[step.key] = std::max(row.failed_tries[step.key], step.tries);
  }

  void take(TextResult result) {
    const auto request = requests_.find(result.number);
    // The row has ended meanwhile with another text of the same step.
    if (request == requests_.end()) return;
    const Request which = std::move(request->second);
    requests_.erase(request);
    HeldRow& row = rows_.at(which.task);
    row.requests.erase(which.key);
    KeptStep step{.key = which.key, .result = std::move(result)};
    step.tries = row.failed_tries[step.key] + 1;
    ++figures_.texts;
    figures_.prompt_tokens += step.result.prompt_tokens;
    figures_.new_tokens += step.result.new_tokens;
    StageTokens& stage = tokens_by_stage_[step.key.substr(0, step.key.find('/'))];
    stage.prompt += step.result.prompt_tokens;
    stage.made += step.result.new_tokens;
    note(row, step);
    add_text(row, std::move(step));
    advance(row);
  }

  void note(const HeldRow& row, const KeptStep& step) {
    std::string key = step.key;
    if (!is_final(step)) key += fmt::format("!{}", step.tries);
    const auto lost = row.lost_texts.find(step.key);
    if (lost != row.lost_texts.end()) key += fmt::format("~{}", lost->second);
    const RecordPlace place = writer_.keep(RecordKind::Text, encode_text(row.input.index, step));
    notes_.push_back(
        {.lease = row.lease, .key = std::move(key), .payload = encode_place(place).dump()});
  }

  // Requests all texts that the row can have now, or finishes the row.
  void advance(HeldRow& row) {
    NextSteps next = program_.next(row.input, row.kept);
    if (next.finished) {
      finish(row, std::move(*next.finished));
      return;
    }
    for (Step& step : next.steps) {
      if (row.requests.contains(step.key)) continue;
      step.request.number = ++last_number_;
      row.requests[step.key] = last_number_;
      requests_[last_number_] = {row.lease.task, step.key};
      engine_.submit(std::move(step.request));
    }
    CONVOY_INVARIANT(!row.requests.empty(), "row {} is not finished but requests no text",
                     row.input.index);
  }

  void finish(HeldRow& row, FinishedRow finished) {
    drop_requests(row);
    const StoredRow stored{.index = row.input.index,
                           .source_index = row.input.source_index,
                           .hash = row.input.hash,
                           .row = std::move(finished),
                           .cost = row.cost};
    const RecordPlace place = writer_.keep(RecordKind::Row, encode_row(stored));
    completions_.push_back({.lease = row.lease,
                            .payload = {},
                            .result = jobs::Result{.payload = encode_result(stored, place)}});
    row.finished = true;
    --num_begun_;
  }

  // The engine waits while texts are kept. A slow store may take a twentieth of the time, as long
  // as a kill loses little compared with the running texts.
  bool keep_is_due() {
    const auto now = Clock::now();
    const size_t unkept = notes_.size() + completions_.size();
    if (unkept == 0) last_keep_ = now;
    const auto running = static_cast<size_t>(engine_.unfinished());
    const Clock::duration pause =
        8 * unkept >= running ? options_.keep_within
                              : std::clamp<Clock::duration>(20 * keep_time_, options_.keep_within,
                                                            10 * options_.keep_within);
    return unkept >= kMostUnkept || (unkept > 0 && (running == 0 || now - last_keep_ >= pause));
  }

  void keep() {
    const auto begin = Clock::now();
    last_keep_ = begin;
    if (notes_.empty() && completions_.empty()) return;
    // The texts of a finished row are in its record.
    std::erase_if(notes_, [&](const jobs::NewNote& one) {
      return !held(one.lease) || rows_.at(one.lease.task).finished;
    });
    writer_.sync_if_due();
    const jobs::HandedIn handed = store_.hand_in(notes_, completions_, {});
    keep_time_ = Clock::now() - begin;
    for (size_t index = 0; index < completions_.size(); ++index) {
      ++(handed.receipts[index].counted ? figures_.rows : figures_.rows_given_up);
      if (held(completions_[index].lease)) rows_.erase(completions_[index].lease.task);
    }
    // Tells the supervisor at once that the first results are stored. Otherwise a worker that dies
    // now would count as one that never began.
    if (!std::exchange(kept_any_, true)) tell_now();
    const std::vector<jobs::NewNote> kept = std::exchange(notes_, {});
    completions_.clear();
    for (size_t index = 0; index < kept.size(); ++index)
      if (!handed.kept[index] && held(kept[index].lease)) give_up(kept[index].lease.task);
  }

  bool held(const Lease& lease) const {
    const auto row = rows_.find(lease.task);
    return row != rows_.end() && row->second.lease.number == lease.number;
  }

  void give_up(int64_t task) {
    const auto row = rows_.find(task);
    if (row == rows_.end()) return;
    drop_requests(row->second);
    std::erase(suspects_, task);
    std::erase(ready_, task);
    if (row->second.begun && !row->second.finished) --num_begun_;
    rows_.erase(row);
    ++figures_.rows_given_up;
  }

  void drop_requests(HeldRow& row) {
    for (const auto& [key, number] : row.requests) {
      engine_.cancel(number);
      requests_.erase(number);
    }
    row.requests.clear();
  }

  void drop_all() {
    for (auto& [task, row] : rows_) drop_requests(row);
    rows_.clear();
    ready_.clear();
    suspects_.clear();
    writer_.sync();
  }

  void tell_now() {
    next_tell_ = {};
    tell();
  }

  void tell() {
    if (!options_.tell || Clock::now() < next_tell_) return;
    next_tell_ = Clock::now() + kTellEvery;
    figures_.rows_held = num_held();
    figures_.not_begun.assign(suspects_.begin(), suspects_.end());
    const EngineFigures engine = engine_.figures();
    share_out(engine);
    options_.tell(figures_, engine);
  }

  void share_out(const EngineFigures& engine) {
    const auto share = [](double seconds, int64_t tokens, int64_t all) {
      return all == 0 ? 0 : seconds * static_cast<double>(tokens) / static_cast<double>(all);
    };
    for (const auto& [stage, tokens] : tokens_by_stage_)
      figures_.seconds_by_stage[stage] =
          share(engine.prefill_seconds, tokens.prompt, figures_.prompt_tokens) +
          share(engine.decode_seconds, tokens.made, figures_.new_tokens);
  }

  const RowWorkerOptions& options_;
  const RowRun& run_;
  const RowProgram& program_;
  TextEngine& engine_;
  jobs::JobStore& store_;
  RecordWriter writer_;
  RecordReader reader_;
  std::unordered_map<int64_t, HeldRow> rows_;      // rows by task
  std::unordered_map<int64_t, Request> requests_;  // requests by number
  std::deque<int64_t> ready_;                      // tasks of rows that are held and not begun
  std::deque<int64_t> suspects_;                   // tasks not begun that have to run alone
  std::vector<jobs::NewNote> notes_;  // notes in segments that are not in the store yet
  // Completions in segments that are not in the store yet.
  std::vector<jobs::Completion> completions_;
  RowWorkerFigures figures_;
  std::map<std::string, StageTokens> tokens_by_stage_;  // tokens of this worker's texts
  bool kept_any_ = false;
  int64_t alone_ = 0;  // task of the suspect that was begun last
  int64_t last_number_ = 0;
  int64_t num_begun_ = 0;  // rows that are in flight
  int64_t num_open_ = 0;   // open rows at the last count
  Clock::time_point last_keep_ = Clock::now();
  Clock::duration keep_time_{};  // duration of the last keep()
  Clock::time_point next_claim_, next_tell_;
};

}  // namespace

RowWorkerFigures run_row_worker(const RowWorkerOptions& options, const RowRun& run,
                                const RowProgram& program, TextEngine& engine,
                                jobs::JobStore& store) {
  if (options.rows_in_flight <= 0 || options.num_workers <= 0)
    throw ConfigError(fmt::format("a worker needs at least one row, found {} rows of {} workers",
                                  options.rows_in_flight, options.num_workers),
                      {.hint = "give workers.world_size 1 or more"});
  return Worker(options, run, program, engine, store).run();
}

}  // namespace convoy::process
