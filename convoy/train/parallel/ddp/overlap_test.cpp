// SPDX-License-Identifier: Apache-2.0
//
// Sums over ranks begin during backward, which a trace of the steps shows.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/core/telemetry/ranks/step_trace.h"
#include "convoy/train/parallel/ddp/ddp.h"
#include "convoy/train/parallel/sharded/sharded.h"
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

void run_steps(Strategy& strategy, telemetry::FlightWriter& flight, const Layers& layers,
               int steps) {
  for (int step = 0; step < steps; ++step) {
    for (const MicroBatch which : {MicroBatch::More, MicroBatch::Last}) {
      strategy.begin_micro_batch(which);
      flight.set_phase("forward");
      const at::Tensor loss = layers.loss(at::ones({8, 64}));
      flight.set_phase("backward");
      loss.backward();
    }
    flight.set_phase("reduce");
    strategy.finish_gradients();
    strategy.finish_step();
    flight.set_step(step + 1);
  }
}

double end_of(const json& slice) { return slice["ts"].get<double>() + slice["dur"].get<double>(); }

// Expects that in each step, `num_within` reductions of layers begin during the last backward pass.
void expect_overlap(const telemetry::StepTrace& trace, int rank, const std::string& reduction,
                    int num_within) {
  const json text = json::parse(trace.chrome_json({.rank = rank}));
  std::vector<json> steps, backwards;
  std::map<uint64_t, std::pair<double, double>> reductions;  // begin and end, by number
  for (const json& event : text.at("traceEvents")) {
    const std::string name = event["name"], kind = event.value("cat", "");
    if (kind == "step") steps.push_back(event);
    if (name == "backward") backwards.push_back(event);
    if (kind == "collective" && name == reduction) {
      auto& [begin, end] = reductions[event["id"]];
      (event["ph"] == "b" ? begin : end) = event["ts"];
    }
  }
  ASSERT_EQ(steps.size(), 3U);
  ASSERT_EQ(backwards.size(), 6U);  // two micro-batches in each step
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
    EXPECT_EQ(within, num_within) << "reductions that began within backward of step " << step;
  }
}

class Traced {
 public:
  Traced() {
    flight_.trace_to(&trace_);
    flight_.set_step(0);
    group_ = comm::join_group(comm::read_rank_environment(), std::chrono::seconds(300), &flight_);
  }
  comm::Group& group() { return *group_; }
  void run(Strategy& strategy, const Layers& layers, const std::string& reduction, int num_within) {
    run_steps(strategy, flight_, layers, 6);
    expect_overlap(trace_, group_->rank(), reduction, num_within);
  }

 private:
  telemetry::StepTrace trace_{3};
  telemetry::FlightWriter flight_;
  std::unique_ptr<comm::Group> group_;
};

RANK_BODY(Overlap) {
  Traced traced;
  const Layers layers;
  Ddp ddp(traced.group(), 1);  // a bucket for each layer
  ddp.prepare({{.name = "layers", .trained = layers.parameters}});
  traced.run(ddp, layers, "world all_reduce", kLayers);
}
TEST(Overlap, EveryBucketIsSentBeforeBackwardEnds) {
  testing::expect_all_well(testing::start_ranks(2, "Overlap"));
}

// Two units are always still being reduced within the node, so the last two units of backward
// follow after it.
RANK_BODY(OverlapOfReplicas) {
  Traced traced;
  const Layers layers;
  std::vector<nn::Unit> units;
  for (const nn::NamedTensor& parameter : layers.parameters)
    units.push_back({.name = parameter.name, .trained = {parameter}});
  Sharded sharded(traced.group(), {.level = ShardLevel::Gradients, .ranks_that_share = 2});
  sharded.prepare(std::move(units));
  traced.run(sharded, layers, "replica all_reduce", kLayers - 2);
}
TEST(Overlap, ReplicasSumWhileBackwardRuns) {
  testing::expect_all_well(testing::start_ranks(4, "OverlapOfReplicas"));
}

}  // namespace
}  // namespace convoy::parallel
