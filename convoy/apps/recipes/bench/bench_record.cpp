// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/bench/bench_record.h"

#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <numeric>

#include "convoy/core/base/cpu_name.h"
#include "convoy/core/base/time_text.h"
#include "convoy/core/base/usable_cpus.h"

namespace convoy::recipes {
namespace {

using Json = nlohmann::ordered_json;

double rounded(double value) { return std::round(value * 1e5) / 1e5; }

double gigabytes(double bytes) { return rounded(bytes / 1e9); }

std::string processor_name() {
  const std::string name = cpu_name();
  return name.empty() ? "CPU" : name;
}

Json device_info(const BenchRecord& record) {
  const bool is_cpu = record.device_kind == "cpu";
  Json info = {{"device_count", record.ranks},
               {"device_name", is_cpu ? processor_name() : record.device_kind}};
  if (is_cpu) {
    const double memory_bytes = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
                                static_cast<double>(::sysconf(_SC_PAGE_SIZE));
    info["total_memory_gb"] = gigabytes(memory_bytes);
    info["gpu_cores"] = usable_cpus();
  }
  info["pytorch_version"] = TORCH_VERSION;
  info["software_stack"] = "convoy";
  info["software_version"] = CONVOY_VERSION;
  return info;
}

Json speed(const BenchRecord& record) {
  const std::vector<double> seconds = record.step_seconds();
  const double total = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  const auto count = static_cast<double>(seconds.size());
  const double tokens_per_s = static_cast<double>(record.step_tokens()) * count / total;
  return {{"total_steps", record.steps.size()},
          {"total_time_seconds", rounded(total + record.steps.front().seconds)},
          {"avg_step_time_seconds", rounded(total / count)},
          {"min_step_time_seconds", rounded(seconds.front())},
          {"max_step_time_seconds", rounded(seconds.back())},
          {"steps_per_second", rounded(count / total)},
          {"tokens_per_second", rounded(tokens_per_s)},
          {"tokens_per_second_per_gpu", rounded(tokens_per_s / static_cast<double>(record.ranks))},
          {"communication_share", rounded(record.communication_share())}};
}

// On a CPU, reserved memory equals used memory, so both are the resident memory.
Json memory(const BenchRecord& record) {
  int64_t peak = 0;
  int64_t least = INT64_MAX;
  double sum = 0;
  for (size_t step = 1; step < record.steps.size(); ++step) {
    peak = std::max(peak, record.steps[step].memory_bytes);
    least = std::min(least, record.steps[step].memory_bytes);
    sum += static_cast<double>(record.steps[step].memory_bytes);
  }
  const double mean = sum / static_cast<double>(record.steps.size() - 1);
  Json figures;
  for (const char* kind : {"memory_allocated_gb", "memory_reserved_gb"}) {
    figures[std::string("peak_") + kind] = gigabytes(static_cast<double>(peak));
    figures[std::string("avg_") + kind] = gigabytes(mean);
    figures[std::string("min_") + kind] = gigabytes(static_cast<double>(least));
  }
  figures["measurement_method"] = record.device_kind == "cpu"
                                      ? "peak resident set of each step, of the largest rank"
                                      : "peak of tensors of each step, of the largest rank";
  return figures;
}

}  // namespace

std::vector<double> BenchRecord::step_seconds() const {
  std::vector<double> seconds;
  for (size_t step = 1; step < steps.size(); ++step) seconds.push_back(steps[step].seconds);
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}

double BenchRecord::communication_share() const {
  double waited = 0;
  double total = 0;
  for (size_t step = 1; step < steps.size(); ++step) {
    waited += steps[step].wait_seconds;
    total += steps[step].seconds;
  }
  return total > 0 ? waited / total : 0;
}

Json benchmark_file(const BenchRecord& record) {
  Json file = {{"platform", record.device_kind == "cpu" ? "cpu" : "nvd"},
               {"dataset", "random"},
               {"timestamp", utc_time_text(std::time(nullptr))},
               {"gpu_info", device_info(record)},
               {"model_info",
                {{"total_params", record.total_parameters},
                 {"trainable_params", record.trained_parameters}}},
               {"parallelism_config",
                {{"strategy_name", record.strategy},
                 {"tensor_model_parallel_size", 1},
                 {"pipeline_model_parallel_size", 1},
                 {"data_parallel_size", record.ranks},
                 {"gradient_accumulation_steps", record.grad_accum}}},
               {"training_config",
                {{"max_steps", record.steps.size()},
                 {"global_batch_size", record.global_batch()},
                 {"micro_batch_size", record.batch},
                 {"sequence_length", record.row_tokens},
                 {"num_gpus", record.ranks},
                 {"parallel_strategy", record.strategy}}},
               {"performance_metrics", speed(record)},
               {"memory_metrics", memory(record)},
               {"step_times", Json::array()},
               {"loss_values", Json::array()},
               {"learning_rates", Json::array()}};
  Json& metrics = file["performance_metrics"];
  if (file["gpu_info"].contains("gpu_cores"))
    metrics["throughput_per_gpu_core"] = rounded(metrics["tokens_per_second"].get<double>() /
                                                 file["gpu_info"]["gpu_cores"].get<double>());
  for (const BenchStep& step : record.steps) {
    file["step_times"].push_back(rounded(step.seconds));
    file["loss_values"].push_back(rounded(step.loss));
    file["learning_rates"].push_back(step.learning_rate);
  }
  return file;
}

}  // namespace convoy::recipes
