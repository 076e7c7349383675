// SPDX-License-Identifier: Apache-2.0
//
// The all-reduce of a bucket begins while backward runs: read from a trace of the steps.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/core/telemetry/step_trace.h"
#include "convoy/train/parallel/ddp/ddp.h"
#include "ranks/ranks.h"

namespace convoy::parallel {
namespace {

using nlohmann::json;

constexpr int kLayers = 6;

struct Layers {
  Layers() {
    at::manual_seed(1);
    for (int layer = 0; layer < kLayers; ++layer)
      parameters.push_back(
          {"layer" + std::to_string(layer), (at::randn({64, 64}) / 8).requires_grad_()});
  }
  at::Tensor loss(at::Tensor x) const {
    for (const nn::NamedTensor& parameter : parameters) x = at::tanh(x.mm(parameter.value));
    return x.square().sum();
  }
  std::vector<nn::NamedTensor> parameters;
};

void run_steps(Ddp& ddp, telemetry::FlightWriter& flight, const Layers& layers, int steps) {
  for (int step = 0; step < steps; ++step) {
    for (const MicroBatch which : {MicroBatch::More, MicroBatch::Last}) {
      ddp.begin_micro_batch(which);
      flight.set_phase("forward");
      const at::Tensor loss = layers.loss(at::ones({8, 64}));
      flight.set_phase("backward");
      loss.backward();
    }
    flight.set_phase("reduce");
    ddp.finish_gradients();
    ddp.finish_step();
    flight.set_step(step + 1);
  }
}

double end_of(const json& slice) { return slice["ts"].get<double>() + slice["dur"].get<double>(); }

RANK_BODY(Overlap) {
  telemetry::StepTrace trace(3);
  telemetry::FlightWriter flight;
  flight.trace_to(&trace);
  flight.set_step(0);
  const auto group =
      comm::join_group(comm::read_rank_environment(), std::chrono::seconds(300), &flight);
  const Layers layers;
  Ddp ddp(*group, 1);  // a bucket per layer
  ddp.prepare({{.name = "layers", .trained = layers.parameters}});
  run_steps(ddp, flight, layers, 6);

  const json text = json::parse(trace.chrome_json({.rank = group->rank()}));
  std::vector<json> steps, backwards;
  std::map<uint64_t, std::pair<double, double>> reductions;  // begin and end by number
  for (const json& event : text.at("traceEvents")) {
    const std::string name = event["name"], kind = event.value("cat", "");
    if (kind == "step") steps.push_back(event);
    if (name == "backward") backwards.push_back(event);
    if (kind == "collective" && name == "world all_reduce") {
      EXPECT_EQ(event["args"]["bytes"], 64 * 64 * 4);
      auto& [begin, end] = reductions[event["id"]];
      (event["ph"] == "b" ? begin : end) = event["ts"];
    }
  }
  ASSERT_EQ(steps.size(), 3U);
  ASSERT_EQ(backwards.size(), 6U);  // two micro-batches each
  ASSERT_EQ(reductions.size(), 3U * kLayers);
  for (const auto& [number, times] : reductions) EXPECT_LE(times.first, times.second);
  for (size_t step = 0; step < steps.size(); ++step) {
    const json& first = backwards[2 * step];
    const json& last = backwards[2 * step + 1];
    int within = 0;
    for (const auto& [number, times] : reductions) {
      const double begin = times.first;
      if (begin < steps[step]["ts"].get<double>() || begin > end_of(steps[step])) continue;
      EXPECT_GE(begin, end_of(first)) << "sent while gradients were still accumulated";
      within += begin > last["ts"].get<double>() && begin < end_of(last) ? 1 : 0;
    }
    EXPECT_EQ(within, kLayers) << "reductions that began within backward of step " << step;
  }
}
TEST(Overlap, EveryBucketIsSentBeforeBackwardEnds) {
  testing::expect_all_well(testing::start_ranks(2, "Overlap"));
}

}  // namespace
}  // namespace convoy::parallel
