// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/jobs/sql/rows.h"

#include <endian.h>
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "convoy/core/base/hash.h"
#include "convoy/core/base/text_as.h"

namespace convoy::jobs {
namespace {

// Includes the length of each field, so that no two rows have the same bytes.
class Checksum {
 public:
  Checksum& add(int64_t value) {
    // Little-endian on every host.
    const uint64_t stored = ::htole64(static_cast<uint64_t>(value));
    std::array<char, sizeof(stored)> bytes{};
    std::memcpy(bytes.data(), &stored, sizeof(stored));
    crc_ = crc32c({bytes.data(), bytes.size()}, crc_);
    return *this;
  }
  Checksum& add(std::string_view text) {
    add(static_cast<int64_t>(text.size()));
    crc_ = crc32c(text, crc_);
    return *this;
  }
  int64_t value() const { return crc_; }

 private:
  uint32_t crc_ = 0;
};

const int64_t* integer_in(const SqlRow& row, size_t column) {
  return std::get_if<int64_t>(&row[column]);
}

std::optional<std::string_view> text_in(const SqlRow& row, size_t column, RowPage::Kind kind) {
  if (kind == RowPage::Kind::Text) {
    if (const std::string* const text = std::get_if<std::string>(&row[column])) return *text;
  } else if (const Bytes* const bytes = std::get_if<Bytes>(&row[column])) {
    return bytes->data;
  }
  return std::nullopt;
}

const int64_t* integer_in(const RowPage::Row& row, size_t column) {
  return row.kind(column) == RowPage::Kind::Integer ? &row.integer(column) : nullptr;
}

std::optional<std::string_view> text_in(const RowPage::Row& row, size_t column,
                                        RowPage::Kind kind) {
  if (row.kind(column) != kind) return std::nullopt;
  return row.text(column);
}

template <class Row>
class Reader {
 public:
  Reader(const Row& row, const std::string& store, size_t at = 0)
      : row_(row), store_(store), at_(at) {}

  int64_t integer() {
    const int64_t* const value = at_ < row_.size() ? integer_in(row_, at_) : nullptr;
    if (value == nullptr) throw_wrong_type();
    ++at_;
    return *value;
  }
  std::string_view text() { return next(RowPage::Kind::Text); }
  std::string_view bytes() { return next(RowPage::Kind::Bytes); }

  // Reads the row's checksum. `what` with `number` names the row.
  void verify(int64_t wanted, const char* what, int64_t number) {
    if (integer() != wanted)
      throw_damaged(store_, fmt::format("the checksum of {} {} is wrong", what, number));
  }

 private:
  std::string_view next(RowPage::Kind kind) {
    const auto value =
        at_ < row_.size() ? text_in(row_, at_, kind) : std::optional<std::string_view>();
    if (!value) throw_wrong_type();
    ++at_;
    return *value;
  }

  [[noreturn]] void throw_wrong_type() const {
    throw_damaged(store_, fmt::format("column {} of a row has the wrong type", at_));
  }

  const Row& row_;
  const std::string& store_;
  size_t at_;
};

std::string failure_json(const Failure& failure, int64_t finished_ms) {
  const nlohmann::json json = {
      {"kind", failure.kind},           {"message", failure.message},
      {"exit_code", failure.exit_code}, {"signal", failure.signal},
      {"attempt", failure.attempt},     {"stderr_tail", failure.stderr_tail},
      {"finished_ms", finished_ms}};
  // A stderr tail may be cut inside a character, or not be UTF-8 at all.
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Failure parse_failure(std::string_view text, const std::string& store, int64_t& finished_ms) {
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    finished_ms = json.value("finished_ms", int64_t{0});
    return {.kind = json.at("kind"),
            .message = json.at("message"),
            .exit_code = json.at("exit_code"),
            .signal = json.at("signal"),
            .attempt = json.at("attempt"),
            .stderr_tail = json.at("stderr_tail")};
  } catch (const nlohmann::json::exception&) {
    throw_damaged(store, "the record of a failure is no JSON");
  }
}

int64_t parse_time(std::string_view text, const std::string& store) {
  if (text.empty()) return 0;
  const auto milliseconds = text_as<int64_t>(text);
  if (!milliseconds) throw_damaged(store, "the time of a result is no number");
  return *milliseconds;
}

// The text column beside the payload.
std::string text_beside(const ResultRow& row) {
  if (row.result.kind == ResultKind::Failed)
    return failure_json(row.result.failure, row.finished_ms);
  return row.finished_ms == 0 ? std::string() : std::to_string(row.finished_ms);
}

void read_beside(std::string_view text, const std::string& store, ResultRow& row) {
  row.result.failure = {};
  if (row.result.kind == ResultKind::Failed)
    row.result.failure = parse_failure(text, store, row.finished_ms);
  else
    row.finished_ms = parse_time(text, store);
}

int64_t result_crc(int64_t task, int64_t kind, std::string_view payload, std::string_view failure) {
  return Checksum().add(task).add(kind).add(payload).add(failure).value();
}

int64_t former_crc(const FormerResult& former, int64_t kind, std::string_view payload,
                   std::string_view beside) {
  return Checksum()
      .add(result_crc(former.task, kind, payload, beside))
      .add(former.replaced_ms)
      .value();
}

}  // namespace

void throw_damaged(const std::string& store, const std::string& what) {
  throw DataError(fmt::format("the job store is damaged: {}", what),
                  {.file = store,
                   .hint = fmt::format("`convoy sweep recover --store '{}'` keeps the undamaged "
                                       "rows; the same sweep then computes the rest again",
                                       store)});
}

int64_t integer_at(const SqlRow& row, size_t column, const std::string& store) {
  return Reader(row, store, column).integer();
}

int64_t crc_of(const Group& group) {
  return Checksum().add(group.name).add(group.workload).add(group.version).value();
}

std::string encode_times(const Group& group) {
  const int64_t crc =
      Checksum().add(group.number).add(group.created_ms).add(group.last_run_ms).value();
  return fmt::format("{} {} {}", group.created_ms, group.last_run_ms, crc);
}

void decode_times(const SqlRow& row, Group& group, const std::string& store) {
  const std::string text(Reader(row, store).text());
  std::istringstream(text) >> group.created_ms >> group.last_run_ms;
  if (text != encode_times(group))
    throw_damaged(store,
                  fmt::format("the checksum of the times of group {} is wrong", group.number));
}

int64_t text_crc_of(std::string_view id, std::string_view parameters) {
  return Checksum().add(id).add(parameters).value();
}

int64_t crc_of(const TaskRow& task) {
  return Checksum()
      .add(task.group)
      .add(task.priority)
      .add(task.units)
      .add(task.next_unit)
      .add(task.units_done)
      .add(static_cast<int64_t>(task.state))
      .value();
}

int64_t crc_of(const RangeRow& range) {
  return Checksum()
      .add(range.task)
      .add(range.first)
      .add(range.count)
      .add(range.attempt)
      .add(range.owner)
      .add(range.expires_ms)
      .value();
}

int64_t crc_of(int64_t task, const Part& part) {
  return Checksum().add(task).add(part.first).add(part.count).add(part.payload).value();
}

void decode_group(const SqlRow& row, const std::string& store, Group& group) {
  Reader reader(row, store);
  group.number = reader.integer();
  group.name = reader.text();
  group.workload = reader.text();
  group.version = reader.text();
  reader.verify(crc_of(group), "group", group.number);
}

template <class Row>
void read_task(const Row& row, const std::string& store, TaskRow& task) {
  Reader reader(row, store);
  task.number = reader.integer();
  task.group = reader.integer();
  task.id = reader.bytes();
  task.parameters = reader.text();
  task.priority = reader.integer();
  task.units = reader.integer();
  task.next_unit = reader.integer();
  task.units_done = reader.integer();
  task.state = static_cast<TaskState>(reader.integer());
  reader.verify(text_crc_of(task.id, task.parameters), "task", task.number);
  reader.verify(crc_of(task), "task", task.number);
}

TaskRow decode_task(const SqlRow& row, const std::string& store) {
  TaskRow task;
  read_task(row, store, task);
  return task;
}

void decode_task(const RowPage::Row& row, const std::string& store, TaskRow& task) {
  read_task(row, store, task);
}

RangeRow decode_range(const SqlRow& row, const std::string& store) {
  Reader reader(row, store);
  RangeRow range;
  range.number = reader.integer();
  range.task = reader.integer();
  range.first = reader.integer();
  range.count = reader.integer();
  range.attempt = reader.integer();
  range.owner = reader.text();
  range.expires_ms = reader.integer();
  reader.verify(crc_of(range), "range", range.number);
  return range;
}

Part decode_part(int64_t task, const SqlRow& row, const std::string& store) {
  Reader reader(row, store);
  Part part;
  part.first = reader.integer();
  part.count = reader.integer();
  part.payload = reader.bytes();
  reader.verify(crc_of(task, part), "a finished range of task", task);
  return part;
}

int64_t crc_of(const Note& note) {
  return Checksum().add(note.task).add(note.key).add(note.payload).value();
}

Note decode_note(const SqlRow& row, const std::string& store) {
  Reader reader(row, store, 1);
  Note note;
  note.task = reader.integer();
  note.key = reader.text();
  note.payload = reader.bytes();
  reader.verify(crc_of(note), "a note of task", note.task);
  return note;
}

template <class Row>
bool read_result(int64_t task, Reader<Row>& reader, const std::string& store, ResultRow& found) {
  const int64_t kind = reader.integer();
  if (kind == 0) return false;
  found.result.kind = static_cast<ResultKind>(kind);
  found.result.payload = reader.bytes();
  const std::string_view beside = reader.bytes();
  reader.verify(result_crc(task, kind, found.result.payload, beside), "the result of task", task);
  read_beside(beside, store, found);
  return true;
}

bool decode_result(int64_t task, const RowPage::Row& row, size_t at, const std::string& store,
                   ResultRow& found) {
  Reader reader(row, store, at);
  return read_result(task, reader, store, found);
}

ResultRow decode_result(int64_t task, const SqlRow& row, const std::string& store) {
  Reader reader(row, store);
  ResultRow found;
  if (!read_result(task, reader, store, found))
    throw_damaged(store, fmt::format("the result of task {} is none", task));
  return found;
}

FormerResult decode_former(const SqlRow& row, const std::string& store) {
  Reader reader(row, store);
  FormerResult former;
  former.task = reader.integer();
  const int64_t kind = reader.integer();
  ResultRow found;
  found.result.kind = static_cast<ResultKind>(kind);
  found.result.payload = reader.bytes();
  const std::string_view beside = reader.bytes();
  former.replaced_ms = reader.integer();
  reader.verify(former_crc(former, kind, found.result.payload, beside), "a former result of task",
                former.task);
  read_beside(beside, store, found);
  former.result = std::move(found.result);
  former.finished_ms = found.finished_ms;
  return former;
}

int64_t task_number(const RowPage::Row& row, const std::string& store) {
  return Reader(row, store).integer();
}

SqlRow encode_result(int64_t task, const ResultRow& row) {
  const int64_t kind = static_cast<int64_t>(row.result.kind);
  const std::string beside = text_beside(row);
  return {task, kind, Bytes{row.result.payload}, Bytes{beside},
          result_crc(task, kind, row.result.payload, beside)};
}

SqlRow encode_former(const FormerResult& former) {
  const int64_t kind = static_cast<int64_t>(former.result.kind);
  const std::string beside = text_beside({former.result, former.finished_ms});
  return {former.task,
          kind,
          Bytes{former.result.payload},
          Bytes{beside},
          former.replaced_ms,
          former_crc(former, kind, former.result.payload, beside)};
}

}  // namespace convoy::jobs
