// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/telemetry/ranks/flight_record.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"

namespace convoy::telemetry {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxTextBytes = 4 << 20;
constexpr size_t kMaxRecords = 1024;
constexpr size_t kMaxWordBytes = 16;
constexpr int64_t kMostNumber = int64_t{1} << 62;
constexpr const char* kStateWords[] = {"entered", "waiting", "done", "failed"};

Json record_json(const CollectiveRecord& record) {
  const auto kept = std::clamp<ptrdiff_t>(record.num_dims, 0, std::ssize(record.shape));
  Json object;
  object["group"] = record.group;
  object["operation"] = record.operation;
  object["sequence"] = record.sequence;
  object["dtype"] = record.dtype;
  object["shape"] = std::vector<int64_t>(record.shape.begin(), record.shape.begin() + kept);
  object["num_dims"] = record.num_dims;
  object["num_elements"] = record.num_elements;
  object["bytes"] = record.bytes;
  object["group_size"] = record.group_size;
  object["state"] = kStateWords[static_cast<size_t>(record.state)];
  object["entered_us_ago"] = record.entered_us_ago;
  object["waited_us_ago"] = record.waited_us_ago;
  object["left_us_ago"] = record.left_us_ago;
  return object;
}

std::string render(const RankFlight& flight, size_t max_records, const char* separator) {
  Json head;
  head["version"] = 1;
  head["rank"] = flight.rank;
  head["pid"] = flight.pid;
  head["ended"] = flight.ended;
  head["num_beats"] = flight.num_beats;
  head["beat_us_ago"] = flight.beat_us_ago;
  head["step"] = flight.step;
  head["checkpoint_step"] = flight.checkpoint_step;
  head["phase"] = flight.phase;
  head["num_collectives"] = flight.num_collectives;
  std::string text = head.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.pop_back();
  text += ",\"records\":[";
  // Open collectives are always kept, because the diagnosis depends on them, even when many later
  // ones have started.
  const auto open = std::find_if(flight.records.begin(), flight.records.end(),
                                 [](const CollectiveRecord& record) { return record.open(); });
  const auto recent =
      flight.records.end() - static_cast<ptrdiff_t>(std::min(max_records, flight.records.size()));
  for (auto record = std::min(open, recent); record != flight.records.end(); ++record) {
    text += separator;
    text += record_json(*record).dump(-1, ' ', false, Json::error_handler_t::replace);
    text += ',';
  }
  if (text.back() == ',') text.pop_back();
  return text + separator + "]}" + separator;
}

[[noreturn]] void refuse(const std::string& what) {
  throw DataError("not a flight record: " + what,
                  {.hint = "name a flight-RANK.json as Convoy left it in the run folder"});
}

const Json& member(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) refuse(fmt::format("{} is missing", key));
  return *found;
}

int64_t number(const Json& object, const char* key, int64_t least, int64_t most = kMostNumber) {
  const Json& value = member(object, key);
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(most)))
    refuse(fmt::format("{} must be a whole number", key));
  const auto found = value.get<int64_t>();
  if (found < least || found > most) refuse(fmt::format("{} is {}", key, found));
  return found;
}

std::string text_member(const Json& object, const char* key) {
  const Json& value = member(object, key);
  if (!value.is_string()) refuse(fmt::format("{} must be a text", key));
  const auto& text = value.get_ref<const std::string&>();
  const bool fits =
      text.size() <= kMaxWordBytes &&
      std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (!fits) refuse(fmt::format("{} is too long or not printable", key));
  return text;
}

const Json& list(const Json& object, const char* key, size_t most) {
  const Json& value = member(object, key);
  if (!value.is_array() || value.size() > most)
    refuse(fmt::format("{} must be a list of at most {}", key, most));
  return value;
}

CollectiveRecord parse_record(const Json& object) {
  if (!object.is_object()) refuse("a record must be an object");
  constexpr int64_t kMostInt = std::numeric_limits<int>::max();
  CollectiveRecord record;
  record.group = text_member(object, "group");
  record.operation = text_member(object, "operation");
  record.sequence = number(object, "sequence", 0);
  record.dtype = text_member(object, "dtype");
  const Json& shape = list(object, "shape", record.shape.size());
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (!shape[dim].is_number_integer()) refuse("shape must hold whole numbers");
    record.shape[dim] = std::clamp<int64_t>(shape[dim].get<int64_t>(), 0, kMostNumber);
  }
  record.num_dims = static_cast<int>(number(object, "num_dims", 0, kMostInt));
  record.num_elements = number(object, "num_elements", 0);
  record.bytes = number(object, "bytes", 0);
  record.group_size = static_cast<int>(number(object, "group_size", 0, kMostInt));
  const std::string state = text_member(object, "state");
  const auto found = std::find(std::begin(kStateWords), std::end(kStateWords), state);
  if (found == std::end(kStateWords)) refuse(fmt::format("state is `{}`", state));
  record.state = static_cast<CollectiveState>(found - std::begin(kStateWords));
  record.entered_us_ago = number(object, "entered_us_ago", -1);
  record.waited_us_ago = number(object, "waited_us_ago", -1);
  record.left_us_ago = number(object, "left_us_ago", -1);
  return record;
}

}  // namespace

std::string flight_json(const RankFlight& flight, size_t max_records) {
  return render(flight, max_records, "");
}

RankFlight parse_flight_json(std::string_view text) {
  if (text.size() > kMaxTextBytes) refuse(fmt::format("{} bytes", text.size()));
  const Json object = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) refuse("wanted one JSON object");
  number(object, "version", 1, 1);
  RankFlight flight;
  constexpr int64_t kMostInt = std::numeric_limits<int>::max();
  flight.rank = static_cast<int>(number(object, "rank", 0, kMostInt));
  flight.pid = number(object, "pid", 0, kMostInt);
  const Json& ended = member(object, "ended");
  if (!ended.is_boolean()) refuse("ended must be true or false");
  flight.ended = ended.get<bool>();
  flight.num_beats = number(object, "num_beats", 0);
  flight.beat_us_ago = number(object, "beat_us_ago", -1);
  flight.step = number(object, "step", -1);
  flight.checkpoint_step = number(object, "checkpoint_step", -1);
  flight.phase = text_member(object, "phase");
  flight.num_collectives = number(object, "num_collectives", 0);
  for (const Json& record : list(object, "records", kMaxRecords))
    flight.records.push_back(parse_record(record));
  return flight;
}

std::filesystem::path write_flight_file(const std::filesystem::path& folder,
                                        const RankFlight& flight) {
  const std::filesystem::path path = folder / fmt::format("flight-{}.json", flight.rank);
  std::ofstream file(path, std::ios::trunc);
  file << render(flight, kMaxRecords, "\n") << std::flush;
  if (!file)
    throw IoError("cannot be written", {.file = path, .hint = "check free space and permissions"});
  return path;
}

}  // namespace convoy::telemetry
