// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/ledger/finished_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "convoy/core/base/error.h"

namespace convoy::process {
namespace {

using nlohmann::json;

struct RowResult {
  RecordPlace place;
  std::string state;
  RowCost cost;
};

RowResult decode_result(const std::string& payload) {
  try {
    const json result = json::parse(payload);
    return {.place = decode_place(result.at("place")),
            .state = result.at("state"),
            .cost = {result.at("texts"), result.at("prompt_tokens"), result.at("new_tokens")}};
  } catch (const json::exception& error) {
    throw DataError(fmt::format("a result in the store belongs to no row: {}", error.what()),
                    {.hint = "the store of this run is damaged: start anew with another --run-dir, "
                             "or restore a copy"});
  }
}

// Returns nullopt if the record is damaged.
std::optional<PublishedRow> finished_row(RecordReader& reader, const RecordPlace& place) {
  try {
    return PublishedRow{.stored = decode_row(reader.read(place, RecordKind::Row))};
  } catch (const DataError&) {
    return std::nullopt;
  }
}

PublishedRow failed_row(RecordReader& reader, const std::string& parameters,
                        const jobs::Failure& failure) {
  PublishedRow row;
  row.input = read_input(reader, parameters);
  row.stored = {.index = row.input->index,
                .source_index = row.input->source_index,
                .hash = row.input->hash,
                .row = {.state = "engine_error", .value = nullptr},
                .cost = {}};
  row.failure = failure.message;
  row.tries = failure.attempt;
  return row;
}

// The location of a finished row. File names are long but few, so an entry holds the number of its
// file.
struct Entry {
  int64_t index = 0;
  int64_t task = 0;
  int64_t offset = 0;
  int64_t length = 0;
  int64_t file = -1;  // -1 = the task failed
};

class SegmentPass {
 public:
  SegmentPass(jobs::JobStore& store, const RowRun& run) : store_(store), reader_(run) {
    entries_.reserve(static_cast<size_t>(run.rows));
    store.for_each_task(run.group, [&](const jobs::TaskRecord& task) { add(task); });
    // The tasks are already in this order, except in a store that was recovered.
    std::sort(entries_.begin(), entries_.end(),
              [](const Entry& left, const Entry& right) { return left.index < right.index; });
    for (size_t place = 0; place < entries_.size(); ++place)
      if (entries_[place].index != static_cast<int64_t>(place))
        throw DataError(fmt::format("the store has row {} where row {} should be",
                                    entries_[place].index, place),
                        {.hint = "the store of this run is damaged: start anew with another "
                                 "--run-dir, or restore a copy"});
    if (static_cast<int64_t>(entries_.size()) != run.rows)
      throw DataError(fmt::format("the store has {} of {} rows", entries_.size(), run.rows),
                      {.hint = "the store of this run is damaged: start anew with another "
                               "--run-dir, or restore a copy"});
  }

  FinishedPass visit_all(const std::function<void(PublishedRow&)>& visit) {
    FinishedPass pass;
    std::vector<int64_t> damaged;
    for (const Entry& entry : entries_) {
      std::optional<PublishedRow> row = read(entry);
      if (!row) {
        damaged.push_back(entry.task);
        continue;
      }
      visit(*row);
      ++pass.rows;
    }
    pass.reopened = damaged.empty() ? 0 : store_.redo(damaged);
    return pass;
  }

 private:
  void add(const jobs::TaskRecord& task) {
    CONVOY_INVARIANT(task.result.has_value(), "a row of the run is not finished");
    Entry entry{.index = PlannedRow::parse(task.parameters).index, .task = task.number};
    if (task.result->kind == jobs::ResultKind::Failed) {
      failed_[task.number] = {task.parameters, task.result->failure};
    } else {
      const RowResult result = decode_result(task.result->payload);
      const auto& place = std::get<SegmentOffset>(result.place);
      entry.offset = place.offset;
      entry.length = place.length;
      entry.file = number_of(place.file);
    }
    entries_.push_back(entry);
  }

  int64_t number_of(const std::string& file) {
    const auto [known, is_new] = numbers_.emplace(file, static_cast<int64_t>(files_.size()));
    if (is_new) files_.push_back(file);
    return known->second;
  }

  // Returns nullopt if the record is damaged.
  std::optional<PublishedRow> read(const Entry& entry) {
    if (entry.file < 0) {
      const auto& [parameters, failure] = failed_.at(entry.task);
      return failed_row(reader_, parameters, failure);
    }
    std::optional<PublishedRow> row = finished_row(
        reader_,
        SegmentOffset{files_[static_cast<size_t>(entry.file)], entry.offset, entry.length});
    if (row && row->stored.index != entry.index) row.reset();
    return row;
  }

  jobs::JobStore& store_;
  RecordReader reader_;
  std::vector<Entry> entries_;
  std::vector<std::string> files_;
  std::unordered_map<std::string, int64_t> numbers_;
  std::unordered_map<int64_t, std::pair<std::string, jobs::Failure>> failed_;
};

// The store lists the rows in their order and holds each row whole.
FinishedPass visit_rows_in_store(jobs::JobStore& store, const RowRun& run,
                                 const std::function<void(PublishedRow&)>& visit) {
  RecordReader reader(run);
  FinishedPass pass;
  std::vector<int64_t> damaged;
  int64_t index = 0;
  store.for_each_task(run.group, [&](const jobs::TaskRecord& task) {
    CONVOY_INVARIANT(task.result.has_value(), "a row of the run is not finished");
    std::optional<PublishedRow> row =
        task.result->kind == jobs::ResultKind::Failed
            ? failed_row(reader, task.parameters, task.result->failure)
            : finished_row(reader, decode_result(task.result->payload).place);
    ++index;
    if (!row) {
      damaged.push_back(task.number);
      return;
    }
    if (row->stored.index != index - 1)
      throw DataError(
          fmt::format("the store has row {} where row {} should be", row->stored.index, index - 1),
          {.hint = "the store of this run is damaged: start anew with another --run-dir, or "
                   "restore a copy"});
    visit(*row);
    ++pass.rows;
  });
  if (index != run.rows)
    throw DataError(fmt::format("the store has {} of {} rows", index, run.rows),
                    {.hint = "the store of this run is damaged: start anew with another --run-dir, "
                             "or restore a copy"});
  pass.reopened = damaged.empty() ? 0 : store.redo(damaged);
  return pass;
}

}  // namespace

FinishedPass for_each_finished(jobs::JobStore& store, const RowRun& run,
                               const std::function<void(PublishedRow&)>& visit) {
  return run.texts_in_store ? visit_rows_in_store(store, run, visit)
                            : SegmentPass(store, run).visit_all(visit);
}

int64_t reopen_engine_errors(jobs::JobStore& store, const RowRun& run) {
  std::vector<int64_t> failed;
  store.for_each_task(run.group, [&](const jobs::TaskRecord& task) {
    if (!task.result) return;
    if (task.result->kind == jobs::ResultKind::Failed ||
        decode_result(task.result->payload).state == "engine_error")
      failed.push_back(task.number);
  });
  return failed.empty() ? 0 : store.redo(failed);
}

bool has_answered_rows(jobs::JobStore& store, const RowRun& run) {
  bool has_any = false;
  store.for_each_task(run.group, [&](const jobs::TaskRecord& task) {
    if (has_any || !task.result || task.result->kind == jobs::ResultKind::Failed) return;
    const auto result = decode_result(task.result->payload);
    has_any = result.state != "engine_error" && result.cost.texts > 0;
  });
  return has_any;
}

InputRow read_input(RecordReader& reader, const std::string& parameters) {
  const PlannedRow planned = PlannedRow::parse(parameters);
  try {
    InputRow row = decode_input(reader.read(planned.record, RecordKind::Input));
    if (row.index != planned.index || row.hash != planned.hash)
      throw DataError(
          fmt::format("the run's rows are not those of its plan: row {} where row {} should be",
                      row.index, planned.index),
          {.hint = "the files of the run folder were changed: restore them, or start anew with "
                   "another --run-dir"});
    return row;
  } catch (DataError& error) {
    if (std::holds_alternative<SegmentOffset>(planned.record))
      error.location().hint = "remove this file: the same command writes it again";
    throw;
  }
}

std::string encode_result(const StoredRow& row, const RecordPlace& place) {
  return json{{"place", encode_place(place)},
              {"state", row.row.state},
              {"texts", row.cost.texts},
              {"prompt_tokens", row.cost.prompt_tokens},
              {"new_tokens", row.cost.new_tokens}}
      .dump();
}

}  // namespace convoy::process
