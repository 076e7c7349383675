// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/profile/rank_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/json_depth.h"
#include "convoy/core/base/json_member.h"
#include "convoy/core/base/json_reason.h"

namespace convoy::profile {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

int64_t nanoseconds(double microseconds) {
  constexpr double kMost = 1e15;  // 30 years
  if (!(std::abs(microseconds) < kMost))
    throw std::domain_error("a time in it is beyond any clock");
  return std::llround(microseconds * 1e3);
}

int small(const json& number) {
  const auto value = number.get<int64_t>();
  if (value < 0 || value > 1'000'000)
    throw std::domain_error(fmt::format("no job has {} ranks or threads", value));
  return static_cast<int>(value);
}

Span span_of(const json& event) {
  const int64_t begin = nanoseconds(event.at("ts").get<double>());
  return {.begin_ns = begin, .end_ns = begin + nanoseconds(event.at("dur").get<double>())};
}

void add_collective(const json& event, RankTrace& trace, std::map<int64_t, size_t>& places) {
  const auto number = event.at("id").get<int64_t>();
  const int64_t time = nanoseconds(event.at("ts").get<double>());
  if (event.at("ph") == "e") {
    trace.collectives.at(places.at(number)).flight.end_ns = time;
    return;
  }
  const json& facts = event.at("args");
  places[number] = trace.collectives.size();
  trace.collectives.push_back({.name = event.at("name").get<std::string>(),
                               .group = facts.at("group").get<std::string>(),
                               .sequence = facts.at("sequence").get<int64_t>(),
                               .bytes = facts.at("bytes").get<int64_t>(),
                               .flight = {.begin_ns = time, .end_ns = time},
                               .wait = {}});
}

void check(const RankTrace& trace) {
  const auto is_wrong = [](const Span& span) { return span.begin_ns < 0 || span.length_ns() < 0; };
  const auto named_wrong = [&is_wrong](const NamedSpan& span) { return is_wrong(span.span); };
  if (trace.rank >= trace.world_size)
    throw std::domain_error(
        fmt::format("it belongs to rank {} of {}", trace.rank, trace.world_size));
  if (std::any_of(trace.steps.begin(), trace.steps.end(), named_wrong) ||
      std::any_of(trace.phases.begin(), trace.phases.end(), named_wrong) ||
      std::any_of(trace.collectives.begin(), trace.collectives.end(),
                  [&is_wrong](const TracedCollective& collective) {
                    return is_wrong(collective.flight) || is_wrong(collective.wait);
                  }))
    throw std::domain_error("something in it ends before it begins");
}

RankTrace read(const json& text) {
  RankTrace trace;
  trace.rank = small(text.at("distributedInfo").at("rank"));
  trace.world_size = small(text.at("distributedInfo").at("world_size"));
  trace.since_1970_ns = text.at("baseTimeNanoseconds").get<int64_t>();
  const json& own = text.at("convoy");
  trace.host = own.at("host").get<std::string>();
  trace.num_threads = small(own.at("num_threads"));
  trace.has_device_clock = own.at("clock") == "device";
  trace.is_full = own.at("is_full").get<bool>();
  trace.num_notes = own.at("num_notes").get<int64_t>();
  trace.note_ns = own.at("note_ns").get<double>();
  std::map<int64_t, size_t> places;  // index of each collective, by its number
  for (const json& event : text.at("traceEvents")) {
    const std::string kind = member_or(event, "cat", std::string());
    if (kind == "step")
      trace.steps.push_back({event.at("name").get<std::string>(), span_of(event)});
    else if (kind == "phase")
      trace.phases.push_back({event.at("name").get<std::string>(), span_of(event)});
    else if (kind == "collective")
      add_collective(event, trace, places);
    else if (kind == "wait")
      trace.collectives.at(places.at(event.at("args").at("id").get<int64_t>())).wait =
          span_of(event);
  }
  std::stable_sort(trace.collectives.begin(), trace.collectives.end(),
                   [](const TracedCollective& left, const TracedCollective& right) {
                     return left.flight.begin_ns < right.flight.begin_ns;
                   });
  check(trace);
  return trace;
}

// The times at which shared collectives were done on one rank.
using Ends = std::map<std::pair<std::string, int64_t>, int64_t>;

Ends ends_of(const RankTrace& trace) {
  Ends ends;
  for (const TracedCollective& collective : trace.collectives)
    if (collective.name.find("broadcast") ==
        std::string::npos)  // its root need not wait for others
      ends[{collective.group, collective.sequence}] = collective.flight.end_ns;
  return ends;
}

// The time by which `other` must be moved so that shared collectives end together. The median does
// not depend on the few collectives that a busy host held up.
std::optional<int64_t> median_lag_ns(const Ends& first, const Ends& other) {
  std::vector<int64_t> lags;
  for (const auto& [key, end] : other)
    if (const auto found = first.find(key); found != first.end())
      lags.push_back(found->second - end);
  if (lags.empty()) return std::nullopt;
  std::nth_element(lags.begin(), lags.begin() + static_cast<std::ptrdiff_t>(lags.size() / 2),
                   lags.end());
  return lags[lags.size() / 2];
}

void move_by(RankTrace& trace, int64_t ns) {
  const auto move = [ns](Span& span) {
    if (span == Span()) return;
    span.begin_ns += ns;
    span.end_ns += ns;
  };
  for (NamedSpan& step : trace.steps) move(step.span);
  for (NamedSpan& phase : trace.phases) move(phase.span);
  for (TracedCollective& collective : trace.collectives) {
    move(collective.flight);
    move(collective.wait);
  }
}

}  // namespace

RankTrace parse_rank_trace(std::string_view text, const std::string& source) {
  const auto refuse = [&source](const std::string& reason) {
    return DataError(fmt::format("{} is not a trace of Convoy: {}", source, reason),
                     {.hint = "logging.profile_steps of a training writes them"});
  };
  if (nested_deeper(text)) throw refuse("its JSON is nested too deep");
  try {
    return read(json::parse(text));
  } catch (const json::exception& error) {
    throw refuse(json_reason(error.what()));
  } catch (const std::out_of_range&) {
    throw refuse("a collective ends or is waited for that never began");
  } catch (const std::domain_error& error) {
    throw refuse(error.what());
  }
}

std::vector<RankTrace> read_rank_traces(const fs::path& run_folder) {
  std::vector<RankTrace> traces;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(run_folder / "traces", failure)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("rank-") || !name.ends_with(".json")) continue;
    traces.push_back(parse_rank_trace(read_file(entry.path()), entry.path().string()));
    const RankTrace& trace = traces.back();
    if (name != fmt::format("rank-{}.json", trace.rank))
      throw DataError(fmt::format("{} is the trace of rank {}", entry.path().string(), trace.rank),
                      {.hint = "remove the file: it belongs to another run"});
    if (trace.world_size != traces.front().world_size)
      throw DataError(
          fmt::format("{} belongs to a run of {} ranks, {} to a run of {}", entry.path().string(),
                      trace.world_size, fmt::format("rank-{}.json", traces.front().rank),
                      traces.front().world_size),
          {.hint = "remove the traces of the other run"});
  }
  if (traces.empty())
    throw ConfigError(fmt::format("{} holds no traces", run_folder.string()),
                      {.hint = "train with --profile-steps 10:15, or profile a training with "
                               "`convoy profile CONFIG`"});
  std::sort(traces.begin(), traces.end(),
            [](const RankTrace& left, const RankTrace& right) { return left.rank < right.rank; });
  return traces;
}

void align_clocks(std::vector<RankTrace>& traces) {
  if (traces.empty()) return;
  std::map<std::string, int64_t> moves;  // by host: its ranks share one clock
  for (const RankTrace& trace : traces) moves.try_emplace(trace.host, trace.since_1970_ns);
  const Ends first = ends_of(traces.front());
  for (auto& [host, move] : moves) {
    if (host == traces.front().host) continue;
    for (const RankTrace& trace : traces)
      if (trace.host == host)
        if (const auto lag = median_lag_ns(first, ends_of(trace))) {
          move = moves.at(traces.front().host) + *lag;
          break;
        }
  }
  for (RankTrace& trace : traces) move_by(trace, moves.at(trace.host));
}

}  // namespace convoy::profile
