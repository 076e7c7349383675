// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/doctor/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/process_descriptor.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/core/telemetry/runs/run_history.h"
#include "convoy/machine/monitor/gpus/gpu_info.h"

namespace convoy::monitor {
namespace {

using telemetry::bytes_text;

constexpr int64_t kGib = int64_t{1} << 30;
constexpr double kHot = 87;  // data-centre GPUs slow down from about here

std::string limit_text(const std::optional<uint64_t>& value) {
  return value ? std::to_string(*value) : "unlimited";
}

void judge_gpu(const DeviceReading& reading, std::vector<Finding>& findings) {
  const std::string label = reading.label();
  const MetricValues& values = reading.values;
  const auto add = [&](FindingLevel level, const char* check, std::string text, std::string fix) {
    findings.push_back({level, check, std::move(text), std::move(fix), ExitCode::Device});
  };
  if (!reading.problem.empty()) {
    add(FindingLevel::Blocking, "gpu-answers",
        fmt::format("{} does not answer: {}", label, reading.problem),
        "drain the host and reset the GPU (nvidia-smi --gpu-reset) or reboot; if it comes back, "
        "replace it");
    return;
  }
  if (!reading.xids.empty())
    add(FindingLevel::Warning, "xid",
        fmt::format("{}: the driver reports Xid {}", label, fmt::join(reading.xids, ", ")),
        "look the number up in NVIDIA's Xid catalogue; 48, 63, 64, 79, 94 and 95 mean that the GPU "
        "needs a reset or a replacement");
  if (values[Metric::RemapFailed].value_or(0) > 0)
    add(FindingLevel::Blocking, "row-remap",
        fmt::format("{}: a bad memory row could not be replaced", label),
        "keep jobs off this GPU and have it replaced");
  else if (values[Metric::RemapPending].value_or(0) > 0)
    add(FindingLevel::Warning, "row-remap",
        fmt::format("{}: a bad memory row waits to be replaced", label),
        "reset the GPU when it is idle: nvidia-smi --gpu-reset");
  if (values[Metric::EccUncorrected].value_or(0) > 0)
    add(FindingLevel::Warning, "ecc",
        fmt::format("{}: {:.0f} uncorrected memory errors since the driver was loaded", label,
                    *values[Metric::EccUncorrected]),
        "reset the GPU; if they come back, have it replaced");
  if (values[Metric::Temperature].value_or(0) >= kHot)
    add(FindingLevel::Warning, "temperature",
        fmt::format("{} is at {:.0f} C", label, *values[Metric::Temperature]),
        "look at fans, airflow and the room; it slows down when it gets hotter");
  // This bit is ignored: a GPU at its power limit works as intended.
  constexpr unsigned long long kPowerCap = 0x4;
  if (reading.throttle_reasons && (*reading.throttle_reasons & ~kPowerCap) != 0) {
    const std::string words = throttle_text(*reading.throttle_reasons & ~kPowerCap);
    if (words != "none")
      add(FindingLevel::Warning, "throttle", fmt::format("{} is slowed now: {}", label, words),
          "hw_thermal and sw_thermal: cooling; hw_brake: the power supply; `convoy gpus watch` "
          "shows "
          "for how long");
  }
}

void judge_peers(const PeerAccess& peers, std::vector<Finding>& findings) {
  if (peers.pairs == 0) return;
  const std::string pairs = counted(peers.pairs, "pair") + " of GPUs";
  if (peers.known == 0) {
    findings.push_back({FindingLevel::Note, "peer-access",
                        "the driver does not report whether GPUs read each other's memory"});
    return;
  }
  if (peers.refused.empty()) {
    findings.push_back({FindingLevel::Fine, "peer-access",
                        peers.pairs == 1 ? "the two GPUs read each other's memory"
                                         : fmt::format("{} read each other's memory", pairs)});
    return;
  }
  constexpr size_t kNamed = 4;
  const auto named = std::min(kNamed, peers.refused.size());
  findings.push_back(
      {FindingLevel::Warning, "peer-access",
       fmt::format("{} of {} cannot read each other's memory, so their exchanges go through the "
                   "host's memory: {}{}",
                   peers.refused.size(), pairs,
                   fmt::join(peers.refused.begin(),
                             peers.refused.begin() + static_cast<std::ptrdiff_t>(named), ", "),
                   named < peers.refused.size() ? ", ..." : ""),
       "in a virtual machine switch ACS off or pass the GPUs through together; else expect slower "
       "collectives",
       ExitCode::Device});
}

Finding missing_devices(const DeviceFacts& facts) {
  if (facts.mismatch)
    return {FindingLevel::Blocking, "driver",
            "the NVIDIA driver was updated under a running kernel module: their versions differ",
            "reload the nvidia modules or reboot", ExitCode::Device};
  return {FindingLevel::Note, "driver",
          fmt::format("no GPU: {}; ranks compute on CPUs", facts.problem), ""};
}

Finding judge_driver(const DeviceFacts& facts, bool amd) {
  if (amd)
    return {FindingLevel::Warning, "driver",
            fmt::format("{} of AMD: Convoy's own commands compute on CPUs here",
                        counted(static_cast<int64_t>(facts.devices.size()), "GPU")),
            "`convoy launch` starts programs of a ROCm PyTorch on them", ExitCode::Device};
  return {
      FindingLevel::Fine, "driver",
      fmt::format(
          "NVIDIA driver {}{}",
          facts.versions.driver.empty() ? "of an unknown version" : facts.versions.driver,
          facts.versions.cuda > 0 ? ", CUDA up to " + cuda_version_text(facts.versions.cuda) : "")};
}

void judge_architecture(const Device& device, std::vector<Finding>& findings) {
  if (device.compute_major > 0 &&
      (device.compute_major < 7 || (device.compute_major == 7 && device.compute_minor < 5)))
    findings.push_back(
        {FindingLevel::Warning, "architecture",
         fmt::format("gpu{} ({}) has compute capability {}.{}; CUDA 13 begins at 7.5", device.gpu,
                     device.name, device.compute_major, device.compute_minor),
         "leave it out with --gpu-ids", ExitCode::Device});
}

Finding judge_activity_counters(const std::vector<MetricGap>& gaps) {
  const auto gap = std::find_if(gaps.begin(), gaps.end(), [](const MetricGap& each) {
    return each.metric == facts_of(Metric::SmActive).name;
  });
  if (gap == gaps.end())
    return {FindingLevel::Fine, "gpm",
            "the GPUs report the activity of their multiprocessors (GPM)"};
  return {FindingLevel::Note, "gpm",
          fmt::format("no activity of the multiprocessors: {}", gap->reason), ""};
}

}  // namespace

std::vector<Finding> judge_devices(const DeviceFacts& facts) {
  std::vector<Finding> findings;
  for (const Nvml::Broken& broken : facts.broken) {
    if (!broken.is_lost) continue;  // a container or a job hides it
    findings.push_back(
        {FindingLevel::Blocking, "gpu-answers",
         fmt::format("gpu{} cannot be opened: {}", broken.index, broken.reason),
         "drain the host and reset the GPU (nvidia-smi --gpu-reset) or reboot; if it comes back, "
         "replace it",
         ExitCode::Device});
  }
  if (facts.devices.empty()) {
    findings.push_back(missing_devices(facts));
    return findings;
  }
  const bool amd = facts.devices[0].vendor == Vendor::Amd;
  findings.push_back(judge_driver(facts, amd));
  const auto gpus = std::count_if(facts.devices.begin(), facts.devices.end(),
                                  [](const Device& device) { return !device.mig; });
  findings.push_back(
      {FindingLevel::Fine, "gpus",
       fmt::format("{} visible{}", counted(gpus, "GPU"),
                   facts.num_hidden > 0 ? fmt::format(", {} hidden", facts.num_hidden) : "")});
  for (const std::string& note : facts.selection_notes)
    findings.push_back({FindingLevel::Warning, "visible-devices", note,
                        "correct or unset CUDA_VISIBLE_DEVICES", ExitCode::Usage});
  for (const Device& device : facts.devices) judge_architecture(device, findings);
  for (const DeviceReading& reading : facts.readings) judge_gpu(reading, findings);
  judge_peers(facts.peers, findings);
  if (!amd) findings.push_back(judge_activity_counters(facts.gaps));
  return findings;
}

std::vector<Finding> judge_host(const HostFacts& facts, const HostValues& values) {
  std::vector<Finding> findings;
  findings.push_back(
      {facts.usable_cpus < facts.cpus ? FindingLevel::Note : FindingLevel::Fine, "cpus",
       fmt::format("{} of {} may be used", facts.usable_cpus, counted(facts.cpus, "CPU")), ""});
  const double load = values[HostMetric::Load].value_or(0);
  if (facts.cpus > 0 && load > 1.5 * facts.cpus)
    findings.push_back(
        {FindingLevel::Warning, "load",
         fmt::format("{:.0f} threads compete for {}", load, counted(facts.cpus, "CPU")),
         "look for other jobs: `ps -eo pid,pcpu,args --sort=-pcpu | head`"});
  const int64_t usable = facts.usable_mib > 0 ? facts.usable_mib : facts.available_mib;
  if (usable > 0 && usable < 1024)
    findings.push_back({FindingLevel::Warning, "memory",
                        fmt::format("{} MiB of memory are left for a new process", usable),
                        "end other programs or ask for more memory"});
  else
    findings.push_back(
        {FindingLevel::Fine, "memory",
         fmt::format("{} MiB of {} are left for a new process", usable, facts.memory_mib)});
  if (values[HostMetric::SwapUsed].value_or(0) > 1024)
    findings.push_back({FindingLevel::Warning, "swap",
                        fmt::format("{:.0f} MiB are swapped out", *values[HostMetric::SwapUsed]),
                        "a rank that is swapped holds all others up: end other programs"});
  return findings;
}

std::vector<Finding> judge_limits(const LimitFacts& facts) {
  constexpr uint64_t kFiles = 4096;
  constexpr uint64_t kProcesses = 4096;
  std::vector<Finding> findings;
  if (facts.files.soft && *facts.files.soft < kFiles) {
    const bool can_be_raised = !facts.files.hard || *facts.files.hard >= kFiles;
    findings.push_back(
        {can_be_raised ? FindingLevel::Note : FindingLevel::Warning, "nofile",
         fmt::format(
             "{} open files are allowed (hard limit {}); the launcher raises it as far as it may",
             *facts.files.soft, limit_text(facts.files.hard)),
         "ulimit -n 65536, or LimitNOFILE= of the service"});
  } else {
    findings.push_back({FindingLevel::Fine, "nofile",
                        fmt::format("{} open files are allowed", limit_text(facts.files.soft))});
  }
  if (facts.locked_bytes.soft && facts.has_fast_network)
    findings.push_back(
        {FindingLevel::Warning, "memlock",
         fmt::format("{} may be locked, and InfiniBand locks its buffers",
                     bytes_text(static_cast<int64_t>(*facts.locked_bytes.soft))),
         "ulimit -l unlimited, LimitMEMLOCK=infinity, or docker run --ulimit memlock=-1"});
  else
    findings.push_back({FindingLevel::Fine, "memlock",
                        facts.locked_bytes.soft
                            ? bytes_text(static_cast<int64_t>(*facts.locked_bytes.soft)) +
                                  " may be locked; no InfiniBand that needs more"
                            : "locked memory is not limited"});
  if (facts.processes.soft && *facts.processes.soft < kProcesses)
    findings.push_back({FindingLevel::Warning, "nproc",
                        fmt::format("{} processes and threads are allowed", *facts.processes.soft),
                        "ulimit -u 65536, or TasksMax= of the service"});
  else
    findings.push_back(
        {FindingLevel::Fine, "nproc",
         fmt::format("{} processes and threads are allowed", limit_text(facts.processes.soft))});
  return findings;
}

std::vector<Finding> judge_shared_memory(const SharedMemoryFacts& facts) {
  if (!facts.bytes)
    return {{FindingLevel::Warning, "shm",
             "/dev/shm is missing; NCCL and other programs' data loaders need it",
             "mount a tmpfs there"}};
  const std::string text = fmt::format("/dev/shm has {}, {} free", bytes_text(*facts.bytes),
                                       bytes_text(facts.free_bytes));
  if (facts.free_bytes < kGib)
    return {{FindingLevel::Warning, "shm", text,
             "docker run --shm-size=8g (or --ipc=host); remove the files of old jobs there"}};
  return {{FindingLevel::Fine, "shm", text}};
}

std::vector<Finding> judge_disk(const DiskFacts& facts) {
  constexpr double kSlow = 50;  // MiB/s
  constexpr int64_t kLittle = 5 * kGib;
  std::vector<Finding> findings;
  const std::string where = facts.folder.string();
  if (!facts.problem.empty()) {
    findings.push_back({FindingLevel::Blocking, "disk",
                        fmt::format("nothing can be written in {}: {}", where, facts.problem),
                        "name a folder that can be written: --dir, or train.output_dir of a run"});
    return findings;
  }
  const std::string kind = facts.file_system.empty() ? "" : fmt::format(" ({})", facts.file_system);
  const double speed = facts.mib_per_s.value_or(0);
  findings.push_back({speed < kSlow ? FindingLevel::Warning : FindingLevel::Fine, "disk",
                      fmt::format("{}{} takes {:.0f} MiB/s", where, kind, speed),
                      speed < kSlow ? "put checkpoints on a faster disk: train.output_dir" : ""});
  findings.push_back({facts.free_bytes >= 0 && facts.free_bytes < kLittle ? FindingLevel::Warning
                                                                          : FindingLevel::Fine,
                      "disk-space",
                      fmt::format("{} free in {}", bytes_text(facts.free_bytes), where),
                      facts.free_bytes >= 0 && facts.free_bytes < kLittle
                          ? "free some: a full disk stops a run with 12"
                          : ""});
  if (!facts.locks)
    findings.push_back(
        {FindingLevel::Warning, "locks",
         fmt::format("{}{} has no locks: two runs could use one folder", where, kind),
         "mount it with locks (NFS: nolock off), or keep run folders elsewhere"});
  else if (facts.remote)
    findings.push_back({FindingLevel::Note, "locks",
                        fmt::format("{}{} has locks, and is shared: SQLite stores of sweeps and of "
                                    "convoy process belong on a local disk",
                                    where, kind),
                        "for several hosts `convoy store serve` gives a PostgreSQL"});
  else
    findings.push_back({FindingLevel::Fine, "locks", fmt::format("{}{} has locks", where, kind)});
  return findings;
}

std::vector<Finding> judge_kernel(const KernelFacts& facts) {
  if (facts.cannot_watch.empty())
    return {{FindingLevel::Fine, "kernel",
             fmt::format("Linux {} (5.3 is the oldest that Convoy runs on)", facts.release)}};
  return {{FindingLevel::Blocking, "kernel",
           fmt::format("no process can be started and watched under Linux {}: {}", facts.release,
                       facts.cannot_watch),
           kProcessDescriptorsHint}};
}

std::vector<Finding> judge_clock(const ClockFacts& facts) {
  if (!facts.known)
    return {{FindingLevel::Note, "clock",
             "the kernel does not report whether the clock is synchronised", ""}};
  if (facts.synchronised)
    return {{FindingLevel::Fine, "clock",
             fmt::format("the clock is synchronised within {:.0f} ms", facts.most_error_s * 1000)}};
  return {{FindingLevel::Note, "clock",
           "the clock is not synchronised (no NTP); Convoy does not depend on it, but logs of "
           "several hosts will not match",
           "start chronyd or systemd-timesyncd"}};
}

std::vector<Finding> judge_port(const PortFacts& facts) {
  if (facts.is_free)
    return {{FindingLevel::Fine, "port", fmt::format("port {} is free", facts.port)}};
  return {{FindingLevel::Note, "port",
           fmt::format(
               "port {}, torchrun's for several hosts, is taken; jobs of one host choose their own",
               facts.port),
           "name another one: --master-port"}};
}

namespace {

// Judges a run that no process writes. It has failed when its events say so, or when they stop
// without an end: its process was killed then.
Finding judge_ended_run(const RunFacts& facts, const std::string& place) {
  const bool failed = !facts.failure.empty() || facts.end == "failed";
  if (failed || (facts.begun && facts.end.empty()))
    return {
        FindingLevel::Blocking, "run",
        fmt::format("{} failed at {}: {}", facts.name, place,
                    facts.failure.empty() ? telemetry::kEndedWithoutAWord : facts.failure),
        "see logs/ in its folder; the command that started it continues from its last checkpoint",
        facts.failure_code};
  return {FindingLevel::Note, "run",
          facts.begun ? fmt::format("{} does not run now: {} at {}", facts.name, facts.end, place)
                      : fmt::format("{} does not run now and has not begun", facts.name)};
}

// `place`: "step 3 of 10".
Finding judge_progress(const RunFacts& facts, const std::string& place) {
  if (facts.step < 0)
    return {FindingLevel::Note, "run",
            fmt::format("{} runs and has not finished a step", facts.name), ""};
  const double silent = facts.seconds_since_event;
  // Evaluations and checkpoints take longer than steps.
  const double patience = std::max(60.0, 10 * facts.step_seconds);
  if (silent > patience)
    return {
        FindingLevel::Warning, "progress",
        fmt::format("{} at {} has been silent for {}; a step takes {}", facts.name, place,
                    telemetry::duration_text(silent), telemetry::duration_text(facts.step_seconds)),
        "the launcher ends a rank that is stuck; `convoy runs tail` shows the "
        "last events, logs/ the ranks' output",
        ExitCode::PeerLost};
  return {FindingLevel::Fine, "progress",
          fmt::format("{} is at {}, {:.2f} s a step", facts.name, place, facts.step_seconds)};
}

// Judges how long ranks wait for each other. Needs several ranks.
Finding judge_waits(const RunFacts& facts) {
  const auto [least, most] =
      std::minmax_element(facts.rank_wait_seconds.begin(), facts.rank_wait_seconds.end());
  const double share = 100 * *most / facts.window_seconds,
               own = 100 * *least / facts.window_seconds;
  constexpr double kUnequal = 20;  // points of the time of a step
  const auto slow = least - facts.rank_wait_seconds.begin();
  if (share - own > kUnequal)
    return {FindingLevel::Warning, "slow-rank",
            fmt::format(
                "the others wait for rank {}: it waits {:.0f} % of the time, they up to {:.0f} %",
                slow, own, share),
            "look at its device and host: `convoy gpus watch`, `convoy doctor` there",
            ExitCode::PeerLost};
  return {FindingLevel::Fine, "slow-rank",
          fmt::format("ranks wait {:.0f} % to {:.0f} % of the time for each other", own, share)};
}

Finding judge_run_memory(MemoryFit fit, const std::string& words) {
  const bool bad = fit == MemoryFit::Tight || fit == MemoryFit::TooMuch;
  return {bad                         ? FindingLevel::Warning
          : fit == MemoryFit::Unknown ? FindingLevel::Note
                                      : FindingLevel::Fine,
          "run-memory", words,
          bad ? "a smaller train.batch_size, or train.gradient_checkpointing; "
                "`convoy gpus memory` shows the ranks"
              : ""};
}

}  // namespace

std::vector<Finding> judge_run(const RunFacts& facts) {
  const std::string place = facts.step < 0 ? "its start"
                            : facts.total_steps > 0
                                ? fmt::format("step {} of {}", facts.step, facts.total_steps)
                                : fmt::format("step {}", facts.step);
  if (!facts.held) return {judge_ended_run(facts, place)};
  std::vector<Finding> findings = {judge_progress(facts, place)};
  if (facts.rank_wait_seconds.size() > 1 && facts.window_seconds > 0)
    findings.push_back(judge_waits(facts));
  for (const std::string& warning : facts.warnings)
    findings.push_back({FindingLevel::Note, "warning", warning, ""});
  if (facts.memory) findings.push_back(judge_run_memory(facts.memory->fit, facts.memory->words));
  return findings;
}

int exit_code_of(const std::vector<Finding>& findings, bool strict) {
  for (const FindingLevel level : {FindingLevel::Blocking, FindingLevel::Warning}) {
    if (level == FindingLevel::Warning && !strict) break;
    for (const Finding& finding : findings)
      if (finding.level == level) return static_cast<int>(finding.code);
  }
  return 0;
}

std::string findings_text(const std::vector<Finding>& findings, bool color) {
  struct Look {
    const char* word;
    const char* code;
  };
  const auto look = [](FindingLevel level) -> Look {
    switch (level) {
      case FindingLevel::Fine:
        return {"ok  ", "\x1b[32m"};
      case FindingLevel::Note:
        return {"note", "\x1b[36m"};
      case FindingLevel::Warning:
        return {"WARN", "\x1b[33m"};
      default:
        return {"FAIL", "\x1b[31m"};
    }
  };
  size_t width = 0;
  for (const Finding& finding : findings) width = std::max(width, finding.check.size());
  std::string text;
  int warnings = 0, blocking = 0;
  for (const Finding& finding : findings) {
    const Look shown = look(finding.level);
    warnings += finding.level == FindingLevel::Warning ? 1 : 0;
    blocking += finding.level == FindingLevel::Blocking ? 1 : 0;
    text += fmt::format("{}{}{}  {:<{}}  {}\n", color ? shown.code : "", shown.word,
                        color ? "\x1b[0m" : "", finding.check, width, finding.text);
    if (!finding.fix.empty() && finding.level != FindingLevel::Fine)
      text += fmt::format("      {:<{}}  -> {}\n", "", width, finding.fix);
  }
  if (blocking > 0)
    return text + fmt::format("\n{} in the way, {}\n",
                              blocking == 1 ? "1 thing is" : fmt::format("{} things are", blocking),
                              counted(warnings, "warning"));
  return text + (warnings > 0
                     ? fmt::format("\nnothing is in the way, {}\n", counted(warnings, "warning"))
                     : "\nall is well\n");
}

std::string findings_json(const std::vector<Finding>& findings) {
  using nlohmann::ordered_json;
  ordered_json rows = ordered_json::array();
  const auto word = [](FindingLevel level) {
    return level == FindingLevel::Fine      ? "ok"
           : level == FindingLevel::Note    ? "note"
           : level == FindingLevel::Warning ? "warning"
                                            : "blocking";
  };
  for (const Finding& finding : findings)
    rows.push_back({{"mark", word(finding.level)},
                    {"check", finding.check},
                    {"text", finding.text},
                    {"fix", finding.fix.empty() ? ordered_json() : ordered_json(finding.fix)}});
  const ordered_json whole = {{"schema", "convoy.doctor.v1"},
                              {"findings", rows},
                              {"exit_code", exit_code_of(findings, false)}};
  return whole.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace convoy::monitor
