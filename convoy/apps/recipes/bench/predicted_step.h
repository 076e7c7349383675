// SPDX-License-Identifier: Apache-2.0
//
// A step that was counted, what is said of it, and the time of such a step where it can run.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "convoy/machine/counting/gpu_speed.h"
#include "convoy/machine/counting/predicted_time.h"

namespace convoy::recipes {

// Bytes of one content, "NAME_bytes", beside the least that a program moves of it.
struct MovedBytes {
  std::string name;
  counting::Content content;
  std::optional<double> least = {};
};

struct CountedStep {
  nlohmann::ordered_json described;  // its kind and sizes: first in the report
  std::vector<counting::Work> work;
  double flops = 0;        // for the products that the model needs
  double least_bytes = 0;  // bytes that any program moves
  int64_t tokens = 0;
  counting::Launching launching = counting::Launching::OneByOne;
  std::vector<MovedBytes> moved;
  nlohmann::ordered_json memory =
      nlohmann::ordered_json::object();  // after the bytes that were moved
};

// The counting device, as a GPU to Convoy's ops.
void install_counting_gpu();

nlohmann::ordered_json report_of(const CountedStep& counted, const counting::GpuSpeed& gpu,
                                 const std::string& dtype);

struct MeasuredStep {
  double seconds = 0;                                // mean
  std::map<std::string, double> seconds_by_op = {};  // measure_ops() of one more step
};

// Seconds of one of so many steps. Waits for the device before and after them.
double time_steps(at::Device device, int64_t steps, const std::function<void()>& step);

}  // namespace convoy::recipes
