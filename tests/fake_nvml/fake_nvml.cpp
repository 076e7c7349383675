// SPDX-License-Identifier: Apache-2.0
//
// The part of NVML that Convoy calls, over GPUs that a test describes.
//
// FAKE_NVML_SCENARIO names a JSON file; its member "nvml" is
//   {"driver": "550.90.07", "nvml": "12.550.90.07", "cuda": 12040, "init": 0,
//    "lacks": ["nvmlDevice..."], "dead_ticks": [3, 5], "gpus": [GPU, ...],
//    "every_gpu": {members that each GPU has unless it gives its own}}
// and a GPU {"name", "uuid", "pci": "0000:3b:00.0", "capability": [9, 0], "denied": true,
// "open_error": 15, "memory_mib", "used_mib", "reserved_mib", "util", "mem_busy", "temp",
// "mem_temp", "power_w", "power_limit_w", "energy_j" (a start: the power is added each tick),
// "sm_clock", "mem_clock", "pstate", "throttle" (bits), "throttle_ns": {"74": [...]} (grows by that
// each tick), "gpm": {"2": 91}, "nvlink_kib": [tx, rx] (grows by that), "ecc": [0, 0], "remap":
// [pending, failed], "processes": [{"pid", "mib"}], "lost_at", "xids": {"3": 79}, "node", "switch"
// (of PCIe), "nvswitch": links to it, "peers": {"1": links}, "mig": [{"uuid", "name", "gi", "ci",
// ...}, null]}. A member that is not there is a figure that NVML does not support. Any number may
// be a list: one item a tick, over and over. "xids_at_ms": {"700": 79} and "lost_at_ms" count the
// time since the first nvmlInit instead; so does the member "count_at_ms": {"900": 3} beside
// "gpus", as which the driver counts them from then on, and "hangs_at_ms", from when on memory is
// asked for in vain. A tick of a device is one call of nvmlDeviceGetMemoryInfo_v2. A function that
// is in "lacks" says that it is not found.
//
// FAKE_NVML is the short form:
//   GPU-1 A100 0000:3b:00.0 80000;GPU-2 H100 0001:17:00.0 80000 M-a/1/0/10000 -/0/0/0 M-b/2/0/20000
// One GPU per semicolon: UUID, name, PCI address, MiB, then one word per MIG slot: UUID/gpu
// instance/compute instance/MiB, "-" an empty slot; any slot means that MIG is on. UUID "denied" is
// a GPU that may not be opened. FAKE_NVML_INIT is what nvmlInit returns. The readings of a GPU
// depend on its index: 40 + index degrees, busy for 90 - index percent (memory 50), 1000 + index
// MiB taken, 300.5 + index watts. A GPU named "Quiet" tells no more than its memory.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#define FAKE extern "C" __attribute__((visibility("default")))

namespace {

using nlohmann::json;

constexpr int kSuccess = 0, kInvalid = 2, kNotSupported = 3, kNoPermission = 4, kNotFound = 6,
              kInsufficientSize = 7, kTimeout = 10, kMissing = 13, kLost = 15, kUnknown = 999;

struct Thing {
  json told;
  int index = 0;
  Thing* parent = nullptr;  // of an instance
  long tick = 0;
  double energy_j = 0;
  std::map<std::string, double> counters;
  std::vector<std::unique_ptr<Thing>> instances;  // null = an empty slot
};

struct Sample {
  Thing* thing = nullptr;
  long tick = 0;
};

// Each set gets each event.
struct EventSet {
  std::set<Thing*> registered;
  std::set<std::pair<Thing*, std::string>> told;
};

struct World {
  int users = 0;
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  json told;
  std::vector<std::unique_ptr<Thing>> gpus;
  std::set<std::string> lacks;
};
World world;
// NVML may be used by several threads.
std::recursive_mutex world_mutex;

long milliseconds() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                               world.begin)
      .count();
}

const json& at_tick(const json& value, long tick) {
  if (!value.is_array() || value.empty()) return value;
  return value[static_cast<size_t>(std::max(0L, tick - 1)) % value.size()];
}

bool is_lost(const Thing& thing) {
  const Thing& gpu = thing.parent == nullptr ? thing : *thing.parent;
  if (gpu.told.contains("lost_at_ms") && milliseconds() >= gpu.told["lost_at_ms"].get<long>())
    return true;
  return gpu.told.contains("lost_at") && gpu.tick >= gpu.told["lost_at"].get<long>();
}

bool is_dead(const Thing& thing) {
  const Thing& gpu = thing.parent == nullptr ? thing : *thing.parent;
  if (!world.told.contains("dead_ticks")) return false;
  return gpu.tick >= world.told["dead_ticks"][0] && gpu.tick <= world.told["dead_ticks"][1];
}

int state_of(const Thing& thing, const char* function) {
  if (world.lacks.contains(function)) return kMissing;
  if (is_lost(thing)) return kLost;
  return is_dead(thing) ? kUnknown : kSuccess;
}

// Without the lock: other calls come back.
void hang_if_told() {
  const auto hangs = [] {
    const std::lock_guard<std::recursive_mutex> guard(world_mutex);
    return world.told.contains("hangs_at_ms") &&
           milliseconds() >= world.told["hangs_at_ms"].get<long>();
  };
  while (hangs()) std::this_thread::sleep_for(std::chrono::seconds(1));
}

unsigned counted_gpus() {
  auto count = static_cast<unsigned>(world.gpus.size());
  if (world.told.contains("count_at_ms"))
    for (const auto& [when, less] : world.told["count_at_ms"].items())
      if (milliseconds() >= std::stol(when)) count = less;
  return count;
}

Thing& thing_of(void* handle) { return *static_cast<Thing*>(handle); }

// A number of a thing, by its name.
template <class Number>
int tell(void* handle, const char* function, const char* member, double scale, Number* number) {
  const Thing& thing = thing_of(handle);
  if (const int state = state_of(thing, function); state != kSuccess) return state;
  if (!thing.told.contains(member)) return kNotSupported;
  *number =
      static_cast<Number>(at_tick(thing.told[member], thing.tick).get<double>() * scale + 0.5);
  return kSuccess;
}

unsigned long long mib(const Thing& thing, const char* member) {
  if (!thing.told.contains(member)) return 0;
  return at_tick(thing.told[member], thing.tick).get<unsigned long long>() << 20;
}

// The short form as the long one.
json described_in_words(const std::string& text) {
  json gpus = json::array();
  std::stringstream all(text);
  for (std::string one; std::getline(all, one, ';');) {
    std::stringstream words(one);
    std::string uuid, name, pci;
    long long memory = 0;
    if (!(words >> uuid >> name >> pci >> memory)) continue;
    const auto index = static_cast<int>(gpus.size());
    json gpu = {{"uuid", uuid},
                {"name", name},
                {"pci", pci},
                {"memory_mib", memory},
                {"used_mib", 1000 + index},
                {"reserved_mib", 300},
                {"capability", {8, 0}}};
    if (uuid == "denied") gpu["denied"] = true;
    if (name != "Quiet")
      gpu.update({{"util", 90 - index},
                  {"mem_busy", 50},
                  {"temp", 40 + index},
                  {"power_w", 300.5 + index}});
    for (std::string slot; words >> slot;) {
      char instance[96] = "";
      unsigned gi = 0, ci = 0;
      unsigned long long instance_mib = 0;
      std::sscanf(slot.c_str(), "%95[^/]/%u/%u/%llu", instance, &gi, &ci, &instance_mib);
      if (std::strcmp(instance, "-") == 0) {
        gpu["mig"].push_back(nullptr);
        continue;
      }
      gpu["mig"].push_back({{"uuid", instance},
                            {"name", name},
                            {"gi", gi},
                            {"ci", ci},
                            {"memory_mib", instance_mib}});
    }
    gpus.push_back(std::move(gpu));
  }
  return {{"gpus", gpus}};
}

std::unique_ptr<Thing> made(const json& told, int index, Thing* parent) {
  auto thing = std::make_unique<Thing>();
  thing->told = told;
  thing->index = index;
  thing->parent = parent;
  if (told.contains("energy_j")) thing->energy_j = told["energy_j"].get<double>();
  if (told.contains("mig"))
    for (const json& instance : told["mig"])
      thing->instances.push_back(instance.is_null() ? nullptr : made(instance, index, thing.get()));
  return thing;
}

int text_of(const std::string& value, char* text, unsigned bytes) {
  std::snprintf(text, bytes, "%s", value.c_str());
  return kSuccess;
}

}  // namespace

struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
struct MemoryInfo {
  unsigned long long total, free, used;
};
struct MemoryInfo2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
struct Utilization {
  unsigned gpu, memory;
};
struct FieldValue {
  unsigned field, scope;
  long long timestamp, latency;
  int type, result;
  union {
    double as_double;
    unsigned as_unsigned;
    unsigned long long as_long_long;
  };
};
struct GpmSupport {
  unsigned version, supported;
};
struct GpmMetric {
  unsigned id;
  int result;
  double value;
  const char *short_name, *long_name, *unit;
};
struct GpmQuery {
  unsigned version, count;
  void *earlier, *later;
  GpmMetric metrics[98];
};
struct Process {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};
struct Event {
  void* device;
  unsigned long long kind, data;
  unsigned gpu_instance, compute_instance;
};

FAKE int nvmlInit_v2() {
  const std::lock_guard<std::recursive_mutex> guard(world_mutex);
  const char* const result = std::getenv("FAKE_NVML_INIT");
  if (result != nullptr) return std::atoi(result);
  const int others = world.users;
  // A driver that was dead is begun anew.
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

// The device at the end of link `link`: an index of a GPU, -1 = the switch, -2 = none.
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

// An event that this set has not returned yet. Keys differ: ticks and milliseconds.
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
