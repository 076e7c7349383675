// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/telemetry/ranks/step_trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "convoy/core/telemetry/ranks/flight_record_writer.h"

namespace convoy::telemetry {
namespace {

using nlohmann::json;

std::vector<json> events(const StepTrace& trace, const std::string& kind) {
  std::vector<json> found;
  const json text = json::parse(trace.chrome_json({.rank = 3}));
  for (const json& event : text.at("traceEvents"))
    if (event.value("cat", "") == kind) found.push_back(event);
  return found;
}

void run_step(FlightWriter& flight, int64_t completed) {
  flight.set_phase("forward");
  flight.set_phase("backward");
  const uint64_t number =
      flight.enter({.group = "world", .operation = "all_reduce", .bytes = 4096, .group_size = 2});
  flight.arrived(number);
  flight.set_phase("reduce");
  flight.wait(number);
  flight.done(number);
  flight.set_step(completed);
}

TEST(StepTrace, HoldsTheStepsAfterTheFirstTwo) {
  StepTrace trace(2);
  FlightWriter flight;  // a writer that no launcher watches
  flight.trace_to(&trace);
  flight.set_step(10);
  run_step(flight, 11);
  EXPECT_TRUE(trace.empty());
  for (int64_t completed = 12; completed < 20; ++completed) run_step(flight, completed);
  EXPECT_FALSE(trace.empty());
  std::vector<std::string> steps;
  for (const json& event : events(trace, "step")) steps.push_back(event["name"]);
  EXPECT_EQ(steps, (std::vector<std::string>{"step 13", "step 14"}));
  std::vector<std::string> phases;
  for (const json& event : events(trace, "phase")) phases.push_back(event["name"]);
  EXPECT_EQ(phases, (std::vector<std::string>{"forward", "backward", "reduce", "forward",
                                              "backward", "reduce"}));
}

TEST(StepTrace, CollectivesGoFromTheirStartToTheirOwnEnd) {
  StepTrace trace(1);
  FlightWriter flight;
  flight.trace_to(&trace);
  flight.set_step(0);
  for (int64_t completed = 1; completed < 4; ++completed) run_step(flight, completed);
  const std::vector<json> edges = events(trace, "collective");
  ASSERT_EQ(edges.size(), 2U);
  EXPECT_EQ(edges[0]["name"], "world all_reduce");
  EXPECT_EQ(edges[0]["ph"], "b");
  EXPECT_EQ(edges[1]["ph"], "e");
  EXPECT_EQ(edges[0]["id"], edges[1]["id"]);
  EXPECT_EQ(edges[0]["args"]["bytes"], 4096);
  EXPECT_EQ(edges[0]["pid"], 3);
  const json waited = events(trace, "wait").at(0);
  EXPECT_LE(edges[0]["ts"].get<double>(), edges[1]["ts"].get<double>());
  EXPECT_LE(edges[1]["ts"].get<double>(), waited["ts"].get<double>());  // the wait ends last
}

TEST(StepTrace, ACollectiveThatFailedIsLeftOut) {
  StepTrace trace(1);
  FlightWriter flight;
  flight.trace_to(&trace);
  flight.set_step(0);
  flight.set_step(2);
  const uint64_t number = flight.enter({.group = "world", .operation = "all_reduce"});
  flight.wait(number);
  flight.failed(number);
  flight.set_step(3);
  EXPECT_TRUE(events(trace, "collective").empty());
  EXPECT_EQ(events(trace, "step").size(), 1U);
}

}  // namespace
}  // namespace convoy::telemetry
