// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/train/run_devices.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "convoy/apps/front/machine/visible_gpus.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/json_member.h"
#include "convoy/core/base/usable_cpus.h"
#include "convoy/core/config/resolve.h"
#include "convoy/core/telemetry/runs/run_history.h"
#include "convoy/machine/monitor/watch/job_report.h"

namespace convoy::apps {
namespace {

// At the end of a run the recorder is awaited this long: a driver that has lost a GPU may block a
// call for minutes, while sampling eight GPUs takes milliseconds.
constexpr std::chrono::seconds kDriverPatience{5};

}  // namespace

RunDevices::RunDevices(const Context& context, const launch::JobSetup& setup,
                       const telemetry::RunFolder& folder, const RunDevicesOptions& options)
    : context_(context),
      setup_(setup),
      folder_(folder),
      recorder_(std::make_unique<monitor::RunRecorder>(recorder_options(options), context.log())) {}

// Each host's launcher watches the devices of its host. Hosts without rank 0 write their file
// beside their logs.
monitor::RunRecorderOptions RunDevices::recorder_options(const RunDevicesOptions& options) const {
  const auto environment = config::process_environment();
  const monitor::DeviceSources sources = monitor::device_sources(environment);
  const std::string host = telemetry::host_name();
  monitor::RunRecorderOptions recorder{
      .sources = sources,
      .uuids = visible_gpus(sources, environment).uuids,
      .recorder = {.output = options.own
                                 ? folder_.path() / "devices.csv"
                                 : folder_.logs_folder() / fmt::format("devices-{}.csv", host),
                   .interval_s = options.interval_s,
                   .identity = {.run_id = folder_.path().filename().string(), .host = host}}};
  if (!options.own) return recorder;
  recorder.events = folder_.events_path();
  if (!options.tensorboard.empty()) recorder.tensorboard = options.tensorboard / "devices";
  return recorder;
}

nlohmann::ordered_json RunDevices::report(const monitor::TrainingRecord& training) const {
  const nlohmann::json identity = telemetry::read_run_record(folder_.identity_path());
  monitor::JobWork work{.host = setup_.host,
                        .ranks_here = static_cast<int64_t>(setup_.placement.ranks.size()),
                        .usable_cpus = usable_cpus(),
                        .tokens = training.tokens,
                        .supervised_tokens = training.supervised_tokens};
  work.ranks =
      identity.is_object() ? member_or(identity, "world_size", work.ranks_here) : work.ranks_here;
  if (setup_.on_gpus)
    for (const launch::RankPlacement& rank : setup_.placement.ranks)
      work.uuids.insert(rank.device_uuid);
  work.why_no_cpu_energy = recorder_->host_gap(monitor::HostMetric::CpuEnergy);
  work.why_no_memory_traffic = recorder_->host_gap(monitor::HostMetric::MemRead);
  return monitor::job_report(training.summary, work);
}

void RunDevices::conclude() {
  const Log log = context_.log();
  if (!recorder_->ends_within(kDriverPatience)) {
    log.warning("the GPU driver does not answer: device usage is not reported");
    recorder_.release();  // never destroyed: its thread may be blocked in the driver for ever
    return;
  }
  recorder_->stop();
  // A resumed run without steps left to do keeps the results of the earlier one.
  if (const auto training = recorder_->training(); training && training->tokens > 0) {
    const nlohmann::ordered_json devices = report(*training);
    for (const std::string& line : monitor::job_report_lines(devices)) log.info(line);
    try {
      folder_.write_metrics({{"devices", devices}});
    } catch (const IoError& error) {
      log.warning(error.sentence());
    }
  }
  // Logged only when the run computes on GPUs.
  if (const std::string sentence = recorder_->balance(); setup_.on_gpus && !sentence.empty())
    log.info("balance of the GPUs: " + sentence);
}

}  // namespace convoy::apps
