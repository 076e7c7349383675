// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/gpus/device_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "convoy/machine/monitor/gpus/amd.h"

namespace convoy::monitor {
namespace {

using Clock = std::chrono::steady_clock;
using nvml::Calls;
using nvml::kSuccess;

constexpr auto kLeastGpmInterval = std::chrono::milliseconds(100);
constexpr std::chrono::seconds kFirstPause{2};
constexpr std::chrono::seconds kLongestPause{60};

// Fields for nvmlDeviceGetFieldValues, which reads all of one device in one call.
enum Field { kPowerCap, kSoftHeat, kHardHeat, kBrake, kMemoryHeat, kLinkTx, kLinkRx, kNumFields };
struct FieldFacts {
  unsigned id;
  unsigned scope;
};
constexpr unsigned kAllLinks = ~0U;
constexpr std::array<FieldFacts, kNumFields> kFields = {
    {{74, 0}, {251, 0}, {252, 0}, {253, 0}, {82, 0}, {138, kAllLinks}, {139, kAllLinks}}};

struct GpmFacts {
  unsigned id;
  Metric metric;
};
constexpr std::array<GpmFacts, 11> kGpmMetrics = {{{2, Metric::SmActive},
                                                   {3, Metric::SmOccupancy},
                                                   {5, Metric::TensorActive},
                                                   {10, Metric::DramActive},
                                                   {11, Metric::Fp64Active},
                                                   {12, Metric::Fp32Active},
                                                   {13, Metric::Fp16Active},
                                                   {20, Metric::PcieTx},
                                                   {21, Metric::PcieRx},
                                                   {61, Metric::NvlinkTx},
                                                   {60, Metric::NvlinkRx}}};

double number_of(const nvml::FieldValue& field) {
  switch (field.type) {
    case 0:
      return field.as_double;
    case 1:
      return field.as_unsigned;
    case 2:
      return static_cast<double>(field.as_long);
    case 3:
      return static_cast<double>(field.as_long_long);
    case 4:
      return static_cast<double>(field.as_signed_long_long);
    case 5:
      return field.as_signed;
    default:
      return field.as_short;
  }
}

// True for an answer that stays the same while the program runs.
bool is_final(int code) {
  return code == nvml::kNotSupported || code == nvml::kNoPermission ||
         code == nvml::kFunctionNotFound || code == nvml::kDeprecated ||
         code == nvml::kInvalidArgument || code == nvml::kOtherVersion;
}

bool is_loss(int code) {
  return code == nvml::kGpuIsLost || code == nvml::kResetRequired || code == nvml::kUninitialized;
}

}  // namespace

std::string DeviceReading::label() const {
  return mig ? fmt::format("gpu{}/mig{}", index, gpu_instance) : fmt::format("gpu{}", index);
}

// The values of one device that are kept between readings.
struct DeviceReader::Slot {
  Nvml::Handle known;
  std::string label;
  std::array<std::string, kNumMetrics> reasons = {};  // why a metric is not read; empty = it is
  std::string throttle_reason = {};
  std::string xid_reason = {};
  std::string gpm_reason = {};  // not empty: GPM is not used
  std::array<void*, 2> gpm = {};
  size_t newest = 0;  // index into gpm
  Clock::time_point gpm_time = {};
  bool has_gpm_sample = false;
  std::array<std::optional<double>, 2> link_kib = {};
  Clock::time_point link_time = {};
  bool answers = true;
};

// One reading of one device.
class DeviceReader::SlotReading {
 public:
  SlotReading(Slot& slot, const Calls& calls) : slot_(slot), call_(calls) {
    const Device& device = slot.known.device;
    reading_.index = device.gpu;
    reading_.name = device.name;
    reading_.uuid = device.uuid;
    reading_.pci_address = device.pci_address;
    reading_.mig = device.mig;
    reading_.gpu_instance = device.gpu_instance;
  }

  DeviceReading take() {
    memory();
    if (lost()) return finish();
    utilization();
    sensors();
    if (lost()) return finish();
    fields();
    gpm();
    health();
    return finish();
  }

 private:
  bool lost() const { return !reading_.problem.empty(); }

  DeviceReading finish() {
    slot_.answers = !lost();
    if (lost()) {
      reading_.values = {};
      reading_.throttle_reasons.reset();
      slot_.has_gpm_sample = false;
      slot_.link_kib = {};
    }
    return std::move(reading_);
  }

  // A value is taken when it is plausible; a query that the driver refuses permanently is not
  // repeated.
  void put(Metric metric, int code, double value) {
    if (code != kSuccess) {
      refuse(slot_.reasons[static_cast<size_t>(metric)], code);
      return;
    }
    if (value >= 0 && value <= facts_of(metric).most) reading_.values[metric] = value;
  }

  void refuse(std::string& reason, int code) {
    if (is_loss(code))
      reading_.problem = call_.error(code);
    else if (is_final(code))
      reason = "NVML says: " + call_.error(code);
  }

  bool wanted(Metric metric) const { return slot_.reasons[static_cast<size_t>(metric)].empty(); }

  template <class Function>
  bool can(Metric metric, Function function, const char* symbol) {
    std::string& reason = slot_.reasons[static_cast<size_t>(metric)];
    if (!function && reason.empty()) reason = fmt::format("the driver has no {}", symbol);
    return reason.empty();
  }

  template <class Value>
  void ask(Metric metric, const char* symbol, double scale, int (*function)(void*, Value*)) {
    if (lost() || !can(metric, function, symbol)) return;
    Value value{};
    const int code = function(slot_.known.handle, &value);
    put(metric, code, static_cast<double>(value) * scale);
  }

  void ask_kind(Metric metric, const char* symbol, int (*function)(void*, int, unsigned*),
                int kind) {
    if (lost() || !can(metric, function, symbol)) return;
    unsigned value = 0;
    const int code = function(slot_.known.handle, kind, &value);
    put(metric, code, value);
  }

  void memory() {
    void* const handle = slot_.known.handle;
    nvml::MemoryInfo2 exact{};
    int code = call_.memory_info_2 ? call_.memory_info_2(handle, &exact) : nvml::kFunctionNotFound;
    if (code == kSuccess) {
      put(Metric::MemUsed, code, static_cast<double>(exact.used >> 20));
      put(Metric::MemReserved, code, static_cast<double>(exact.reserved >> 20));
      put(Metric::MemTotal, code, static_cast<double>(exact.total >> 20));
      return;
    }
    put(Metric::MemReserved, code, 0);
    if (lost()) return;
    nvml::MemoryInfo memory{};
    code = call_.memory_info(handle, &memory);
    // For other figures this error may concern one figure only; every working device answers this
    // call.
    if (code == nvml::kUnknownError) reading_.problem = call_.error(code);
    put(Metric::MemUsed, code, static_cast<double>(memory.used >> 20));
    put(Metric::MemTotal, code, static_cast<double>(memory.total >> 20));
  }

  void utilization() {
    if (!can(Metric::GpuUtil, call_.utilization, "nvmlDeviceGetUtilizationRates")) {
      slot_.reasons[static_cast<size_t>(Metric::MemBusy)] =
          slot_.reasons[static_cast<size_t>(Metric::GpuUtil)];
      return;
    }
    nvml::Utilization busy{};
    const int code = call_.utilization(slot_.known.handle, &busy);
    put(Metric::GpuUtil, code, busy.gpu);
    put(Metric::MemBusy, code, busy.memory);
  }

  void sensors() {
    constexpr int kGpuSensor = 0;
    constexpr int kSmClock = 1, kMemClock = 2;
    ask_kind(Metric::Temperature, "nvmlDeviceGetTemperature", call_.temperature, kGpuSensor);
    ask(Metric::Power, "nvmlDeviceGetPowerUsage", 1e-3, call_.power_milliwatts);
    ask(Metric::PowerLimit, "nvmlDeviceGetEnforcedPowerLimit", 1e-3, call_.power_limit_milliwatts);
    ask(Metric::Energy, "nvmlDeviceGetTotalEnergyConsumption", 1e-3, call_.energy_millijoules);
    ask_kind(Metric::SmClock, "nvmlDeviceGetClockInfo", call_.clock_mhz, kSmClock);
    ask_kind(Metric::MemClock, "nvmlDeviceGetClockInfo", call_.clock_mhz, kMemClock);
    ask(Metric::PerformanceState, "nvmlDeviceGetPerformanceState", 1, call_.performance_state);
    if (lost() || !slot_.throttle_reason.empty()) return;
    if (call_.clock_event_reasons == nullptr) {
      slot_.throttle_reason = "the driver has no nvmlDeviceGetCurrentClocksEventReasons";
      return;
    }
    unsigned long long reasons = 0;
    const int code = call_.clock_event_reasons(slot_.known.handle, &reasons);
    if (code == kSuccess)
      reading_.throttle_reasons = reasons;
    else
      refuse(slot_.throttle_reason, code);
  }

  void fields() {
    constexpr std::array<std::pair<Field, Metric>, 5> kPlain = {
        {{kPowerCap, Metric::ThrottlePowerNs},
         {kSoftHeat, Metric::ThrottleSoftHeatNs},
         {kHardHeat, Metric::ThrottleHardHeatNs},
         {kBrake, Metric::ThrottleBrakeNs},
         {kMemoryHeat, Metric::MemTemperature}}};
    if (call_.field_values == nullptr) {
      for (const auto& [field, metric] : kPlain)
        can(metric, call_.field_values, "nvmlDeviceGetFieldValues");
      return;
    }
    std::array<nvml::FieldValue, kNumFields> values;
    for (size_t field = 0; field < kNumFields; ++field) {
      values[field].field = kFields[field].id;
      values[field].scope = kFields[field].scope;
    }
    const int code = call_.field_values(slot_.known.handle, kNumFields, values.data());
    const auto result = [&](Field field) { return code == kSuccess ? values[field].result : code; };
    for (const auto& [field, metric] : kPlain)
      if (wanted(metric)) put(metric, result(field), number_of(values[field]));
    link_rates(result(kLinkTx) == kSuccess && result(kLinkRx) == kSuccess
                   ? std::array<std::optional<double>, 2>{number_of(values[kLinkTx]),
                                                          number_of(values[kLinkRx])}
                   : std::array<std::optional<double>, 2>{});
    if (result(kLinkTx) != kSuccess && !slot_.gpm_reason.empty()) {
      refuse(slot_.reasons[static_cast<size_t>(Metric::NvlinkTx)], result(kLinkTx));
      refuse(slot_.reasons[static_cast<size_t>(Metric::NvlinkRx)], result(kLinkTx));
    }
  }

  // Rates from counters of KiB. A counter that went back was reset.
  void link_rates(const std::array<std::optional<double>, 2>& kib) {
    const Clock::time_point now = Clock::now();
    const double seconds = std::chrono::duration<double>(now - slot_.link_time).count();
    for (size_t way = 0; way < 2; ++way) {
      const auto& before = slot_.link_kib[way];
      if (kib[way] && before && *kib[way] >= *before && seconds > 0)
        put(way == 0 ? Metric::NvlinkTx : Metric::NvlinkRx, kSuccess,
            (*kib[way] - *before) / 1024.0 / seconds);
    }
    slot_.link_kib = kib;
    slot_.link_time = now;
  }

  void gpm() {
    if (lost() || !slot_.gpm_reason.empty()) return;
    const Clock::time_point now = Clock::now();
    if (slot_.has_gpm_sample && now - slot_.gpm_time < kLeastGpmInterval) return;
    const size_t next = 1 - slot_.newest;
    const int code =
        slot_.known.device.mig
            ? call_.gpm_mig_sample(slot_.known.parent,
                                   static_cast<unsigned>(slot_.known.device.gpu_instance),
                                   slot_.gpm[next])
            : call_.gpm_sample(slot_.known.handle, slot_.gpm[next]);
    if (code != kSuccess) {
      refuse(slot_.gpm_reason, code);
      slot_.has_gpm_sample = false;
      return;
    }
    if (slot_.has_gpm_sample) compare_samples(slot_.gpm[slot_.newest], slot_.gpm[next]);
    slot_.newest = next;
    slot_.gpm_time = now;
    slot_.has_gpm_sample = true;
  }

  void compare_samples(void* earlier, void* later) {
    nvml::GpmQuery query;
    query.count = kGpmMetrics.size();
    query.earlier = earlier;
    query.later = later;
    for (size_t at = 0; at < kGpmMetrics.size(); ++at) query.metrics[at].id = kGpmMetrics[at].id;
    const int code = call_.gpm_metrics(&query);
    if (code != kSuccess) {
      refuse(slot_.gpm_reason, code);
      return;
    }
    for (size_t at = 0; at < kGpmMetrics.size(); ++at) {
      const Metric metric = kGpmMetrics[at].metric;
      if (wanted(metric)) put(metric, query.metrics[at].result, query.metrics[at].value);
    }
  }

  void health() {
    if (lost()) return;
    errors(Metric::EccCorrected, 0);
    errors(Metric::EccUncorrected, 1);
    if (can(Metric::RemapPending, call_.remapped_rows, "nvmlDeviceGetRemappedRows")) {
      unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
      const int code =
          call_.remapped_rows(slot_.known.handle, &corrected, &uncorrected, &pending, &failed);
      put(Metric::RemapPending, code, pending);
      put(Metric::RemapFailed, code, failed);
    }
    if (can(Metric::Processes, call_.compute_processes,
            "nvmlDeviceGetComputeRunningProcesses_v3")) {
      unsigned count = 0;
      const int code = call_.compute_processes(slot_.known.handle, &count, nullptr);
      put(Metric::Processes, code == nvml::kInsufficientSize ? kSuccess : code, count);
    }
  }

  void errors(Metric metric, int kind) {
    // Reads the volatile counters, because the aggregate ones stay above 0 after a repair.
    constexpr int kVolatile = 0;
    if (lost() || !can(metric, call_.ecc_errors, "nvmlDeviceGetTotalEccErrors")) return;
    unsigned long long count = 0;
    const int code = call_.ecc_errors(slot_.known.handle, kind, kVolatile, &count);
    put(metric, code, static_cast<double>(count));
  }

  Slot& slot_;
  const Calls& call_;
  DeviceReading reading_;
};

DeviceReader::DeviceReader(const DeviceSources& sources, std::optional<std::set<std::string>> uuids)
    : sources_(sources),
      uuids_(std::move(uuids)),
      nvml_(std::make_unique<Nvml>(sources.nvml_library)) {
  open_slots();
  for (const Gpu& gpu : list_amd_gpus(sources_))
    if (!uuids_ || uuids_->contains(gpu.device.uuid)) amd_.push_back(gpu.device);
  problem_ = nvml_->problem();
  if (problem_.empty() && slots_.empty())
    problem_ = "the NVIDIA driver shows no GPU to this process";
  if (!amd_.empty()) problem_.clear();
}

DeviceReader::~DeviceReader() { close_slots(); }

void DeviceReader::open_slots() {
  const Calls& call = nvml_->calls();
  std::set<std::string> wanted_gpus;
  for (const Nvml::Handle& handle : nvml_->handles()) {
    const std::string& uuid = handle.device.uuid;
    const bool parent_wanted = handle.parent != nullptr && !slots_.empty() &&
                               wanted_gpus.contains(handle.device.pci_address);
    if (uuids_ && !uuids_->contains(uuid) && !parent_wanted) continue;
    if (handle.parent == nullptr) wanted_gpus.insert(handle.device.pci_address);
    auto slot = std::make_unique<Slot>();
    slot->known = handle;
    slot->known.device.numa_node = numa_node_of(sources_.sys, handle.device.pci_address);
    DeviceReading named;
    named.index = handle.device.gpu;
    named.mig = handle.device.mig;
    named.gpu_instance = handle.device.gpu_instance;
    slot->label = named.label();
    nvml::GpmSupport support{};
    void* const asked = handle.parent == nullptr ? handle.handle : handle.parent;
    if (!call.supports_gpm() || (handle.device.mig && call.gpm_mig_sample == nullptr)) {
      slot->gpm_reason = "the driver has no GPM (it came with 520)";
    } else if (const int code = call.gpm_support(asked, &support); code != kSuccess) {
      slot->gpm_reason = code == nvml::kFunctionNotFound
                             ? "the driver has no GPM (it came with 520)"
                             : "NVML says: " + call.error(code);
    } else if (support.supported == 0) {
      slot->gpm_reason = "the GPU has no GPM (it came with Hopper)";
    } else if (call.gpm_alloc(&slot->gpm[0]) != kSuccess ||
               call.gpm_alloc(&slot->gpm[1]) != kSuccess) {
      slot->gpm_reason = "no memory for GPM samples";
    }
    slots_.push_back(std::move(slot));
  }
  if (slots_.empty() || call.event_set_create == nullptr || call.register_events == nullptr ||
      call.event_wait == nullptr || call.event_set_create(&events_) != kSuccess) {
    for (const auto& slot : slots_) slot->xid_reason = "the driver reports no events";
    events_ = nullptr;
    return;
  }
  for (const auto& slot : slots_) {
    if (slot->known.parent != nullptr) continue;
    const int code = call.register_events(slot->known.handle, nvml::kXidEvent, events_);
    if (code != kSuccess) slot->xid_reason = "NVML says: " + call.error(code);
  }
}

void DeviceReader::close_slots() {
  const Calls& call = nvml_->calls();
  for (const auto& slot : slots_)
    for (void* const sample : slot->gpm)
      if (sample != nullptr) call.gpm_free(sample);
  if (events_ != nullptr && call.event_set_free != nullptr) call.event_set_free(events_);
  events_ = nullptr;
  slots_.clear();
}

std::vector<DeviceReading> DeviceReader::read() {
  std::vector<DeviceReading> readings;
  const bool all_silent = !slots_.empty() && std::none_of(slots_.begin(), slots_.end(),
                                                          [](const auto& s) { return s->answers; });
  if (all_silent) try_again();
  for (const auto& slot : slots_) readings.push_back(SlotReading(*slot, nvml_->calls()).take());
  take_events(readings);
  read_amd(readings);
  return readings;
}

// After an update of the driver or a change of the container's cgroup, an open NVML never answers
// again.
void DeviceReader::try_again() {
  const Clock::time_point now = Clock::now();
  if (now < next_try_) return;
  next_try_ = now + pause_;
  pause_ = std::min(pause_ * 2, kLongestPause);
  auto fresh = std::make_unique<Nvml>(sources_.nvml_library);
  if (!fresh->problem().empty() || fresh->handles().empty()) return;
  close_slots();
  nvml_ = std::move(fresh);
  open_slots();
  pause_ = kFirstPause;
}

void DeviceReader::take_events(std::vector<DeviceReading>& readings) {
  const Calls& call = nvml_->calls();
  constexpr int kMostPerReading = 64;
  nvml::Event event{};
  for (int taken = 0; events_ != nullptr && taken < kMostPerReading; ++taken) {
    if (call.event_wait(events_, &event, 0) != kSuccess) return;
    if (event.kind != nvml::kXidEvent) continue;
    for (size_t at = 0; at < slots_.size(); ++at)
      if (slots_[at]->known.handle == event.device) readings[at].xids.push_back(event.data);
  }
}

void DeviceReader::read_amd(std::vector<DeviceReading>& readings) {
  for (const Device& device : amd_) readings.push_back(read_amd_gpu(sources_, device));
}

std::vector<Device> DeviceReader::devices() const {
  std::vector<Device> all;
  for (const auto& slot : slots_) all.push_back(slot->known.device);
  all.insert(all.end(), amd_.begin(), amd_.end());
  return all;
}

std::vector<MetricGap> DeviceReader::gaps() const {
  std::vector<MetricGap> all;
  for (const auto& slot : slots_) {
    for (const MetricFacts& facts : metric_table()) {
      const std::string& reason = slot->reasons[static_cast<size_t>(facts.metric)];
      if (!reason.empty()) all.push_back({slot->label, facts.name, reason});
    }
    if (!slot->gpm_reason.empty())
      for (const GpmFacts& facts : kGpmMetrics)
        if (slot->reasons[static_cast<size_t>(facts.metric)].empty() &&
            facts.metric != Metric::NvlinkTx && facts.metric != Metric::NvlinkRx)
          all.push_back({slot->label, facts_of(facts.metric).name, slot->gpm_reason});
    if (!slot->throttle_reason.empty())
      all.push_back({slot->label, "throttle", slot->throttle_reason});
    if (!slot->xid_reason.empty()) all.push_back({slot->label, "xid", slot->xid_reason});
  }
  for (const Device& device : amd_)
    for (const MetricFacts& facts : metric_table())
      if (!amd_supports(facts.metric))
        all.push_back({fmt::format("gpu{}", device.gpu), facts.name,
                       "the kernel's AMD driver does not show it"});
  return all;
}

}  // namespace convoy::monitor
