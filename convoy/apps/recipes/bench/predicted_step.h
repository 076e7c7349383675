// SPDX-License-Identifier: Apache-2.0
//
// A step counted on the counting device, the report about it, and the measured time of such a step
// on a real device.
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

// Bytes of one kind of content, reported as "NAME_bytes", and the least bytes of it that any
// program must move.
struct MovedBytes {
  std::string name;
  counting::Content content;
  std::optional<double> least = {};
};

struct CountedStep {
  nlohmann::ordered_json described;  // kind and sizes of the step; first in the report
  std::vector<counting::Work> work;
  double flops = 0;        // FLOPs of the products that the model needs
  double least_bytes = 0;  // bytes that any program must move
  int64_t tokens = 0;
  counting::Launching launching = counting::Launching::OneByOne;
  std::vector<MovedBytes> moved;
  nlohmann::ordered_json memory =
      nlohmann::ordered_json::object();  // reported after the moved bytes
};

// Installs the counting device. Convoy's ops treat it as a GPU.
void install_counting_gpu();

nlohmann::ordered_json report_of(const CountedStep& counted, const counting::GpuSpeed& gpu,
                                 const std::string& dtype);

struct MeasuredStep {
  double seconds = 0;                                // mean of the timed steps
  std::map<std::string, double> seconds_by_op = {};  // measure_ops() of one more step
};

// Runs `steps` steps and returns the mean seconds of a step. Waits for the device before and after
// the steps.
double time_steps(at::Device device, int64_t steps, const std::function<void()>& step);

}  // namespace convoy::recipes
