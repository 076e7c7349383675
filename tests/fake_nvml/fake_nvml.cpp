// SPDX-License-Identifier: Apache-2.0
//
// The functions of NVML that Convoy calls, for GPUs that a test describes (see world.h).
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "fake_nvml/nvml_types.h"
#include "fake_nvml/world.h"

#define FAKE extern "C" __attribute__((visibility("default")))

using namespace fake_nvml;

FAKE int nvmlInit_v2() {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  const char* const result = std::getenv("FAKE_NVML_INIT");
  if (result != nullptr) return std::atoi(result);
  const int others = world.users;
  // A driver whose scenario has `dead_ticks` reads the scenario again, as after its restart.
  if (others > 0 && !world.told.contains("dead_ticks")) {
    ++world.users;
    return kSuccess;
  }
  world = {};
  if (const char* const path = std::getenv("FAKE_NVML_SCENARIO")) {
    std::ifstream file(path);
    world.told = json::parse(file).at("nvml");
  } else {
    const char* const words = std::getenv("FAKE_NVML");
    world.told = described_in_words(words == nullptr ? "" : words);
  }
  if (world.told.contains("lacks"))
    for (const json& name : world.told["lacks"]) world.lacks.insert(name.get<std::string>());
  if (world.told.contains("init") && world.told["init"] != 0) return world.told["init"];
  for (const json& told : world.told["gpus"]) {
    json whole = world.told.contains("every_gpu") ? world.told["every_gpu"] : json::object();
    whole.update(told);
    world.gpus.push_back(made(whole, static_cast<int>(world.gpus.size()), nullptr));
  }
  world.users = others + 1;
  return kSuccess;
}

FAKE int nvmlShutdown() {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  if (--world.users == 0) world = {};
  return kSuccess;
}

FAKE const char* nvmlErrorString(int result) {
  switch (result) {
    case kNotSupported:
      return "Not Supported";
    case kNoPermission:
      return "Insufficient Permissions";
    case kMissing:
      return "Function Not Found";
    case kLost:
      return "GPU is lost";
    case kUnknown:
      return "Unknown Error";
    default:
      break;
  }
  static char text[32];
  std::snprintf(text, sizeof(text), "fake error %d", result);
  return text;
}

FAKE int nvmlSystemGetDriverVersion(char* text, unsigned bytes) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  if (!world.told.contains("driver")) return kNotSupported;
  return text_of(world.told["driver"], text, bytes);
}

FAKE int nvmlSystemGetNVMLVersion(char* text, unsigned bytes) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  if (!world.told.contains("nvml")) return kNotSupported;
  return text_of(world.told["nvml"], text, bytes);
}

FAKE int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  if (!world.told.contains("cuda")) return kNotSupported;
  *version = world.told["cuda"];
  return kSuccess;
}

FAKE int nvmlDeviceGetCount_v2(unsigned* count) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  *count = counted_gpus();
  return kSuccess;
}

FAKE int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  if (index >= counted_gpus()) return kInvalid;
  if (world.gpus[index]->told.contains("denied")) return kNoPermission;
  if (world.gpus[index]->told.contains("open_error")) return world.gpus[index]->told["open_error"];
  *handle = world.gpus[index].get();
  return kSuccess;
}

FAKE int nvmlDeviceGetUUID(void* handle, char* text, unsigned bytes) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  return text_of(thing_of(handle).told["uuid"], text, bytes);
}

FAKE int nvmlDeviceGetName(void* handle, char* text, unsigned bytes) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  return text_of(thing_of(handle).told["name"], text, bytes);
}

FAKE int nvmlDeviceGetPciInfo_v3(void* handle, PciInfo* info) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  const std::string address = thing_of(handle).told["pci"];
  std::memset(info, 0, sizeof(*info));
  std::sscanf(address.c_str(), "%x:%x:%x", &info->domain, &info->bus, &info->device);
  return kSuccess;
}

FAKE int nvmlDeviceGetCudaComputeCapability(void* handle, int* major, int* minor) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  const json& told = thing_of(handle).told;
  if (!told.contains("capability")) return kNotSupported;
  *major = told["capability"][0];
  *minor = told["capability"][1];
  return kSuccess;
}

FAKE int nvmlDeviceGetMemoryInfo(void* handle, MemoryInfo* info) {
  hang_if_told();
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  const Thing& thing = thing_of(handle);
  if (const int state = state_of(thing, "nvmlDeviceGetMemoryInfo"); state != kSuccess) return state;
  if (!thing.told.contains("memory_mib")) return kNotSupported;
  info->total = mib(thing, "memory_mib");
  info->used = mib(thing, "used_mib") + mib(thing, "reserved_mib");
  info->free = info->total - info->used;
  return kSuccess;
}

FAKE int nvmlDeviceGetMemoryInfo_v2(void* handle, MemoryInfo2* info) {
  hang_if_told();
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  Thing& thing = thing_of(handle);
  thing.tick += 1;
  if (thing.told.contains("power_w"))
    thing.energy_j += at_tick(thing.told["power_w"], thing.tick).get<double>();
  if (thing.told.contains("throttle_ns"))
    for (const auto& [field, growth] : thing.told["throttle_ns"].items())
      thing.counters[field] += at_tick(growth, thing.tick).get<double>();
  if (thing.told.contains("nvlink_kib")) {
    thing.counters["138"] += thing.told["nvlink_kib"][0].get<double>();
    thing.counters["139"] += thing.told["nvlink_kib"][1].get<double>();
  }
  if (const int state = state_of(thing, "nvmlDeviceGetMemoryInfo_v2"); state != kSuccess)
    return state;
  if (info->version != (sizeof(MemoryInfo2) | (2U << 24)) || !thing.told.contains("memory_mib"))
    return kNotSupported;
  info->total = mib(thing, "memory_mib");
  info->used = mib(thing, "used_mib");
  info->reserved = mib(thing, "reserved_mib");
  info->free = info->total - info->used - info->reserved;
  return kSuccess;
}

FAKE int nvmlDeviceGetMigMode(void* handle, unsigned* current, unsigned* pending) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  const bool on = !thing_of(handle).instances.empty();
  *current = *pending = on ? 1 : 0;
  return on ? kSuccess : kNotSupported;
}

FAKE int nvmlDeviceGetMaxMigDeviceCount(void* handle, unsigned* count) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  *count = static_cast<unsigned>(thing_of(handle).instances.size());
  return kSuccess;
}

FAKE int nvmlDeviceGetMigDeviceHandleByIndex(void* handle, unsigned index, void** instance) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  Thing* const thing = thing_of(handle).instances[index].get();
  if (thing == nullptr) return kNotFound;
  *instance = thing;
  return kSuccess;
}

FAKE int nvmlDeviceGetGpuInstanceId(void* handle, unsigned* id) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  *id = thing_of(handle).told["gi"];
  return kSuccess;
}

FAKE int nvmlDeviceGetComputeInstanceId(void* handle, unsigned* id) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  *id = thing_of(handle).told["ci"];
  return kSuccess;
}

FAKE int nvmlDeviceGetUtilizationRates(void* handle, Utilization* busy) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  busy->memory = 0;
  tell(handle, "nvmlDeviceGetUtilizationRates", "mem_busy", 1, &busy->memory);
  return tell(handle, "nvmlDeviceGetUtilizationRates", "util", 1, &busy->gpu);
}

FAKE int nvmlDeviceGetTemperature(void* handle, int sensor, unsigned* celsius) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  if (sensor != 0) return kInvalid;
  return tell(handle, "nvmlDeviceGetTemperature", "temp", 1, celsius);
}

FAKE int nvmlDeviceGetPowerUsage(void* handle, unsigned* milliwatts) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  return tell(handle, "nvmlDeviceGetPowerUsage", "power_w", 1000, milliwatts);
}

FAKE int nvmlDeviceGetEnforcedPowerLimit(void* handle, unsigned* milliwatts) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  return tell(handle, "nvmlDeviceGetEnforcedPowerLimit", "power_limit_w", 1000, milliwatts);
}

FAKE int nvmlDeviceGetTotalEnergyConsumption(void* handle, unsigned long long* millijoules) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  const Thing& thing = thing_of(handle);
  if (const int state = state_of(thing, "nvmlDeviceGetTotalEnergyConsumption"); state != kSuccess)
    return state;
  if (!thing.told.contains("energy_j")) return kNotSupported;
  *millijoules = static_cast<unsigned long long>(thing.energy_j * 1000 + 0.5);
  return kSuccess;
}

FAKE int nvmlDeviceGetClockInfo(void* handle, int kind, unsigned* mhz) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  return tell(handle, "nvmlDeviceGetClockInfo", kind == 1 ? "sm_clock" : "mem_clock", 1, mhz);
}

FAKE int nvmlDeviceGetPerformanceState(void* handle, int* state) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  return tell(handle, "nvmlDeviceGetPerformanceState", "pstate", 1, state);
}

FAKE int nvmlDeviceGetCurrentClocksEventReasons(void* handle, unsigned long long* reasons) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  return tell(handle, "nvmlDeviceGetCurrentClocksEventReasons", "throttle", 1, reasons);
}

FAKE int nvmlDeviceGetFieldValues(void* handle, int count, FieldValue* values) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  const Thing& thing = thing_of(handle);
  if (const int state = state_of(thing, "nvmlDeviceGetFieldValues"); state != kSuccess)
    return state;
  for (FieldValue* field = values; field != values + count; ++field) {
    field->result = kNotSupported;
    if (field->field == 82 && thing.told.contains("mem_temp")) {
      field->type = 1;
      field->as_unsigned = at_tick(thing.told["mem_temp"], thing.tick);
      field->result = kSuccess;
    }
    const auto counter = thing.counters.find(std::to_string(field->field));
    if (counter == thing.counters.end()) continue;
    field->type = 3;
    field->as_long_long = static_cast<unsigned long long>(counter->second);
    field->result = kSuccess;
  }
  return kSuccess;
}

FAKE int nvmlDeviceGetTotalEccErrors(void* handle, int kind, int, unsigned long long* count) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  const Thing& thing = thing_of(handle);
  if (const int state = state_of(thing, "nvmlDeviceGetTotalEccErrors"); state != kSuccess)
    return state;
  if (!thing.told.contains("ecc")) return kNotSupported;
  *count = thing.told["ecc"][static_cast<size_t>(kind)];
  return kSuccess;
}

FAKE int nvmlDeviceGetRemappedRows(void* handle, unsigned* corrected, unsigned* uncorrected,
                                   unsigned* pending, unsigned* failed) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  const Thing& thing = thing_of(handle);
  if (const int state = state_of(thing, "nvmlDeviceGetRemappedRows"); state != kSuccess)
    return state;
  if (!thing.told.contains("remap")) return kNotSupported;
  *corrected = *uncorrected = 0;
  *pending = thing.told["remap"][0];
  *failed = thing.told["remap"][1];
  return kSuccess;
}

FAKE int nvmlDeviceGetComputeRunningProcesses_v3(void* handle, unsigned* count, Process* found) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  const Thing& thing = thing_of(handle);
  if (const int state = state_of(thing, "nvmlDeviceGetComputeRunningProcesses_v3");
      state != kSuccess)
    return state;
  if (!thing.told.contains("processes")) return kNotSupported;
  const json& all = thing.told["processes"];
  const bool fits = *count >= all.size();
  *count = static_cast<unsigned>(all.size());
  if (!fits) return kInsufficientSize;
  for (size_t at = 0; at < all.size(); ++at)
    found[at] = {.pid = all[at]["pid"],
                 .used_bytes = all[at]["mib"].get<unsigned long long>() << 20,
                 .gpu_instance = 0,
                 .compute_instance = 0};
  return kSuccess;
}

FAKE int nvmlGpmQueryDeviceSupport(void* handle, GpmSupport* support) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  if (world.lacks.contains("nvmlGpmQueryDeviceSupport")) return kMissing;
  const Thing& thing = thing_of(handle);
  bool any = thing.told.contains("gpm");
  for (const auto& instance : thing.instances)
    any = any || (instance && instance->told.contains("gpm"));
  support->supported = any ? 1 : 0;
  return kSuccess;
}

FAKE int nvmlGpmSampleAlloc(void** sample) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  *sample = new Sample;
  return kSuccess;
}

FAKE int nvmlGpmSampleFree(void* sample) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  delete static_cast<Sample*>(sample);
  return kSuccess;
}

FAKE int nvmlGpmSampleGet(void* handle, void* sample) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  Thing& thing = thing_of(handle);
  if (const int state = state_of(thing, "nvmlGpmSampleGet"); state != kSuccess) return state;
  if (!thing.told.contains("gpm")) return kNotSupported;
  *static_cast<Sample*>(sample) = {&thing, thing.tick};
  return kSuccess;
}

FAKE int nvmlGpmMigSampleGet(void* handle, unsigned gpu_instance, void* sample) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  for (const auto& instance : thing_of(handle).instances)
    if (instance && instance->told["gi"] == gpu_instance)
      return nvmlGpmSampleGet(instance.get(), sample);
  return kNotFound;
}

FAKE int nvmlGpmMetricsGet(GpmQuery* query) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  const auto* const earlier = static_cast<Sample*>(query->earlier);
  const auto* const later = static_cast<Sample*>(query->later);
  if (earlier->thing != later->thing || earlier->tick > later->tick) return kInvalid;
  const json& told = later->thing->told["gpm"];
  for (unsigned at = 0; at < query->count; ++at) {
    GpmMetric& metric = query->metrics[at];
    const std::string id = std::to_string(metric.id);
    metric.result = told.contains(id) ? kSuccess : kNotSupported;
    if (metric.result == kSuccess) metric.value = at_tick(told[id], later->tick).get<double>();
  }
  return kSuccess;
}

FAKE int nvmlDeviceGetTopologyCommonAncestor(void* first, void* second, int* level) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  const json &one = thing_of(first).told, &other = thing_of(second).told;
  if (!one.contains("node") || !other.contains("node")) return kNotSupported;
  const bool one_node = one["node"] == other["node"];
  const bool one_switch =
      one.contains("switch") && other.contains("switch") && one["switch"] == other["switch"];
  *level = one_switch ? 10 : one_node ? 40 : 50;
  return kSuccess;
}

FAKE int nvmlDeviceGetP2PStatus(void* first, void* second, int, int* status) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  const json &one = thing_of(first).told, &other = thing_of(second).told;
  if (!one.contains("p2p") || !other.contains("p2p")) return kNotSupported;
  *status = one["p2p"] == true && other["p2p"] == true ? 0 : 1;
  return kSuccess;
}

namespace {

// Returns the device at the other end of link `link`: the index of a GPU, -1 for the switch, or -2
// for none.
int remote_of(const Thing& thing, unsigned link) {
  if (thing.told.contains("nvswitch"))
    return link < thing.told["nvswitch"].get<unsigned>() ? -1 : -2;
  unsigned first = 0;
  if (thing.told.contains("peers"))
    for (const auto& [peer, links] : thing.told["peers"].items()) {
      first += links.get<unsigned>();
      if (link < first) return std::stoi(peer);
    }
  return -2;
}

}  // namespace

FAKE int nvmlDeviceGetNvLinkState(void* handle, unsigned link, unsigned* active) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  const Thing& thing = thing_of(handle);
  if (!thing.told.contains("nvswitch") && !thing.told.contains("peers")) return kNotSupported;
  *active = remote_of(thing, link) == -2 ? 0 : 1;
  return kSuccess;
}

FAKE int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* handle, unsigned link, PciInfo* info) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  const int remote = remote_of(thing_of(handle), link);
  if (remote == -2) return kNotSupported;
  if (remote >= 0)
    return nvmlDeviceGetPciInfo_v3(world.gpus[static_cast<size_t>(remote)].get(), info);
  std::memset(info, 0, sizeof(*info));
  info->bus = 0xa0 + link % 4;
  return kSuccess;
}

namespace {

// Finds an event that this set has not returned yet. The keys of "xids" are ticks, and the keys of
// "xids_at_ms" milliseconds.
bool next_event(EventSet& set, Event* event) {
  for (Thing* const gpu : set.registered) {
    for (const char* const member : {"xids", "xids_at_ms"}) {
      if (!gpu->told.contains(member)) continue;
      for (const auto& [when, xid] : gpu->told[member].items()) {
        const bool due = std::strcmp(member, "xids") == 0 ? gpu->tick >= std::stol(when)
                                                          : milliseconds() >= std::stol(when);
        if (!due || !set.told.emplace(gpu, member + when).second) continue;
        const unsigned instance = gpu->told.value("xid_instance", ~0U);
        *event = {gpu, 8, xid.get<unsigned long long>(), instance, ~0U};
        return true;
      }
    }
  }
  return false;
}

}  // namespace

FAKE int nvmlEventSetCreate(void** set) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  if (world.lacks.contains("nvmlEventSetCreate")) return kMissing;
  *set = new EventSet;
  return kSuccess;
}

FAKE int nvmlEventSetFree(void* set) {
  delete static_cast<EventSet*>(set);
  return kSuccess;
}

FAKE int nvmlDeviceRegisterEvents(void* handle, unsigned long long, void* set) {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  if (thing_of(handle).told.contains("no_events")) return kNotSupported;
  static_cast<EventSet*>(set)->registered.insert(&thing_of(handle));
  return kSuccess;
}

FAKE int nvmlEventSetWait_v2(void* set, Event* event, unsigned limit_ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
  while (true) {
    {
      const std::lock_guard<std::recursive_mutex> guard(world_mutex);
      if (next_event(*static_cast<EventSet*>(set), event)) return kSuccess;
    }
    if (std::chrono::steady_clock::now() >= end) return kTimeout;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}
