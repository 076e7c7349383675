// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/rendezvous/messages.h"

#include <array>
#include <limits>

#include "convoy/core/base/error.h"

namespace convoy::rendezvous {
namespace {

constexpr size_t kSentRecords = 32;  // collectives per rank that are sent to other nodes

constexpr std::array<const char*, 7> kNoticeNames = {
    "stop_for_failure", "stop_for_resize",  "peer_node_lost", "stop_requested",
    "shut_down",        "coordinator_lost", "refused"};

const Json& member(const Json& json, const char* key) {
  const auto found = json.find(key);
  CONVOY_CHECK(found != json.end(), CommError, "a message lacks `{}`", key);
  return *found;
}

int read_int(const Json& json, const char* key) {
  const int64_t number = read_number(json, key);
  CONVOY_CHECK(
      number >= std::numeric_limits<int>::min() && number <= std::numeric_limits<int>::max(),
      CommError, "`{}` of a message is out of range: {}", key, number);
  return static_cast<int>(number);
}

bool read_flag(const Json& json, const char* key) {
  const Json& value = member(json, key);
  CONVOY_CHECK(value.is_boolean(), CommError, "`{}` of a message is not a boolean", key);
  return value.get<bool>();
}

const Json& read_object(const Json& json, const char* key) {
  const Json& value = member(json, key);
  CONVOY_CHECK(value.is_object(), CommError, "`{}` of a message is not an object", key);
  return value;
}

// Most nodes are alike: [[number, how many nodes], ...] keeps the message short for thousands of
// them.
Json runs_of(const std::vector<int>& numbers) {
  Json runs = Json::array();
  for (const int number : numbers) {
    if (!runs.empty() && runs.back()[0] == number)
      runs.back()[1] = runs.back()[1].get<int>() + 1;
    else
      runs.push_back({number, 1});
  }
  return runs;
}

std::vector<int> read_runs(const Json& json, const char* key) {
  constexpr int64_t kMostNodes = 1 << 20;
  const Json& runs = member(json, key);
  CONVOY_CHECK(runs.is_array(), CommError, "`{}` of a message is not a list", key);
  std::vector<int> numbers;
  for (const Json& run : runs) {
    const bool pair = run.is_array() && run.size() == 2 && run[0].is_number_integer() &&
                      run[1].is_number_integer();
    CONVOY_CHECK(pair && run[1].get<int64_t>() > 0 &&
                     run[1].get<int64_t>() <= kMostNodes - static_cast<int64_t>(numbers.size()),
                 CommError, "`{}` of a message is not a list of counts", key);
    numbers.insert(numbers.end(), run[1].get<size_t>(), run[0].get<int>());
  }
  return numbers;
}

telemetry::RankFlight read_flight(const std::string& text) {
  try {
    return telemetry::parse_flight_json(text);
  } catch (const DataError& error) {
    throw CommError(error.sentence());
  }
}

std::vector<int> read_ints(const Json& json, const char* key) {
  const Json& list = member(json, key);
  CONVOY_CHECK(list.is_array(), CommError, "`{}` of a message is not a list", key);
  std::vector<int> numbers;
  for (const Json& entry : list) {
    CONVOY_CHECK(entry.is_number_integer(), CommError, "`{}` of a message is not a list of numbers",
                 key);
    numbers.push_back(entry.get<int>());
  }
  return numbers;
}

}  // namespace

int64_t read_number(const Json& json, const char* key) {
  const Json& value = member(json, key);
  CONVOY_CHECK(value.is_number_integer(), CommError, "`{}` of a message is not a whole number",
               key);
  return value.get<int64_t>();
}

std::string read_text(const Json& json, const char* key) {
  const Json& value = member(json, key);
  CONVOY_CHECK(value.is_string(), CommError, "`{}` of a message is not a text", key);
  return value.get<std::string>();
}

Json to_json(const NodeOffer& offer) {
  return {{"run_id", offer.run_id},
          {"min_nodes", offer.min_nodes},
          {"max_nodes", offer.max_nodes},
          {"node_rank", offer.node_rank},
          {"num_local_ranks", offer.num_local_ranks},
          {"host_name", offer.host_name},
          {"address", offer.address},
          {"hosts_coordinator", offer.hosts_coordinator}};
}

NodeOffer read_offer(const Json& json) {
  NodeOffer offer;
  offer.run_id = read_text(json, "run_id");
  offer.min_nodes = read_int(json, "min_nodes");
  offer.max_nodes = read_int(json, "max_nodes");
  offer.node_rank = read_int(json, "node_rank");
  offer.num_local_ranks = read_int(json, "num_local_ranks");
  offer.host_name = read_text(json, "host_name");
  offer.address = read_text(json, "address");
  offer.hosts_coordinator = read_flag(json, "hosts_coordinator");
  return offer;
}

Json to_json(const Assignment& assignment) {
  return {{"attempt", assignment.attempt},
          {"failures", assignment.failures},
          {"resizes", assignment.resizes},
          {"restarts", assignment.restarts},
          {"node_rank", assignment.node_rank},
          {"first_rank", assignment.first_rank},
          {"world_size", assignment.world_size},
          {"ranks_per_node", runs_of(assignment.ranks_per_node)},
          {"master_address", assignment.master_address},
          {"master_port", assignment.master_port},
          {"own_address", assignment.own_address}};
}

Assignment read_assignment(const Json& json) {
  Assignment assignment;
  assignment.attempt = read_int(json, "attempt");
  assignment.failures = read_int(json, "failures");
  assignment.resizes = read_int(json, "resizes");
  assignment.restarts = read_int(json, "restarts");
  assignment.node_rank = read_int(json, "node_rank");
  assignment.first_rank = read_int(json, "first_rank");
  assignment.world_size = read_int(json, "world_size");
  assignment.ranks_per_node = read_runs(json, "ranks_per_node");
  assignment.master_address = read_text(json, "master_address");
  assignment.master_port = read_int(json, "master_port");
  assignment.own_address = read_text(json, "own_address");
  return assignment;
}

Json to_json(const FailureCause& cause) {
  return {{"exit_code", cause.exit_code}, {"node_rank", cause.node_rank},
          {"host", cause.host},           {"rank", cause.rank},
          {"sentence", cause.sentence},   {"last_lines", cause.last_lines}};
}

FailureCause read_cause(const Json& json) {
  return {.exit_code = read_int(json, "exit_code"),
          .node_rank = read_int(json, "node_rank"),
          .host = read_text(json, "host"),
          .rank = read_int(json, "rank"),
          .sentence = read_text(json, "sentence"),
          .last_lines = read_text(json, "last_lines")};
}

Json to_json(const AttemptEnd& end) {
  Json json = {{"exit_codes", end.exit_codes}};
  if (end.progress) json["progress"] = *end.progress;
  if (end.cause) json["cause"] = to_json(*end.cause);
  for (const telemetry::RankFlight& flight : end.flights)
    json["flights"].push_back(telemetry::flight_json(flight, kSentRecords));
  return json;
}

AttemptEnd read_attempt_end(const Json& json) {
  AttemptEnd end;
  end.exit_codes = read_ints(json, "exit_codes");
  if (json.contains("progress")) end.progress = read_number(json, "progress");
  if (json.contains("cause")) end.cause = read_cause(read_object(json, "cause"));
  if (json.contains("flights") && json["flights"].is_array())
    for (const Json& flight : json["flights"])
      if (flight.is_string())
        end.flights.push_back(read_flight(flight.get_ref<const std::string&>()));
  return end;
}

Json to_json(const Notice& notice) {
  return {{"kind", kNoticeNames.at(static_cast<size_t>(notice.kind))},
          {"exit_code", notice.exit_code},
          {"words", notice.words},
          {"verdict", notice.diagnosis},
          {"signal", notice.signal},
          {"cause", to_json(notice.cause)}};
}

Notice read_notice(const Json& json) {
  const std::string name = read_text(json, "kind");
  Notice notice;
  size_t kind = 0;
  while (kind < kNoticeNames.size() && name != kNoticeNames[kind]) ++kind;
  CONVOY_CHECK(kind < kNoticeNames.size(), CommError, "an unknown notice `{}`", name);
  notice.kind = static_cast<Notice::Kind>(kind);
  notice.exit_code = read_int(json, "exit_code");
  notice.words = read_text(json, "words");
  notice.diagnosis = read_text(json, "verdict");
  notice.signal = read_int(json, "signal");
  notice.cause = read_cause(read_object(json, "cause"));
  return notice;
}

}  // namespace convoy::rendezvous
