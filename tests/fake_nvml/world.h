// SPDX-License-Identifier: Apache-2.0
//
// The GPUs that a test describes, and their readings.
//
// FAKE_NVML_SCENARIO names a JSON file; its member "nvml" is
//   {"driver": "550.90.07", "nvml": "12.550.90.07", "cuda": 12040, "init": 0,
//    "lacks": ["nvmlDevice..."], "dead_ticks": [3, 5], "gpus": [GPU, ...],
//    "every_gpu": {members that each GPU has unless it gives its own}}
// and a GPU {"name", "uuid", "pci": "0000:3b:00.0", "capability": [9, 0], "denied": true,
// "open_error": 15, "memory_mib", "used_mib", "reserved_mib", "util", "mem_busy", "temp",
// "mem_temp", "power_w", "power_limit_w", "energy_j" (at the start; each tick adds the power),
// "sm_clock", "mem_clock", "pstate", "throttle" (bits), "throttle_ns": {"74": [...]} (added each
// tick), "gpm": {"2": 91}, "nvlink_kib": [tx, rx] (added each tick), "ecc": [0, 0], "remap":
// [pending, failed], "processes": [{"pid", "mib"}], "lost_at", "xids": {"3": 79}, "node", "switch"
// (PCIe), "nvswitch": number of links, "peers": {"1": links}, "mig": [{"uuid", "name", "gi", "ci",
// ...}, null]}. NVML does not support a figure whose member is missing. Any number may be a list,
// whose items are used one per tick, again and again. "xids_at_ms": {"700": 79} and "lost_at_ms"
// count milliseconds since the first nvmlInit instead of ticks. So do two members beside "gpus":
// "count_at_ms": {"900": 3} is the number of GPUs that the driver reports from then on, and from
// "hangs_at_ms" on, calls for memory figures do not return. A tick of a device is one call of
// nvmlDeviceGetMemoryInfo_v2. A function in "lacks" returns that it is not found.
//
// FAKE_NVML is the short form:
//   GPU-1 A100 0000:3b:00.0 80000;GPU-2 H100 0001:17:00.0 80000 M-a/1/0/10000 -/0/0/0 M-b/2/0/20000
// GPUs are separated by semicolons. A GPU has a UUID, a name, a PCI address, its MiB, and a word
// for each MIG slot: UUID/gpu instance/compute instance/MiB. The UUID "-" is an empty slot, and any
// slot means that MIG is on. A GPU with the UUID "denied" cannot be opened. FAKE_NVML_INIT is what
// nvmlInit returns. The readings of a GPU depend on its index: 40 + index degrees, 90 - index
// percent busy (memory 50), 1000 + index MiB used, 300.5 + index watts. A GPU named "Quiet" reports
// only its memory.
#pragma once

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

namespace fake_nvml {

using nlohmann::json;

constexpr int kSuccess = 0, kInvalid = 2, kNotSupported = 3, kNoPermission = 4, kNotFound = 6,
              kInsufficientSize = 7, kTimeout = 10, kMissing = 13, kLost = 15, kUnknown = 999;

struct Thing {
  json told;
  int index = 0;
  Thing* parent = nullptr;  // the GPU of an instance; null for a GPU
  long tick = 0;
  double energy_j = 0;
  std::map<std::string, double> counters;
  std::vector<std::unique_ptr<Thing>> instances;  // null: an empty slot
};

struct Sample {
  Thing* thing = nullptr;
  long tick = 0;
};

// The events that a set has returned: every set gets every event.
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
inline World world;
// Guards `world`, because several threads may use NVML.
inline std::recursive_mutex world_mutex;

inline long milliseconds() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                               world.begin)
      .count();
}

inline const json& at_tick(const json& value, long tick) {
  if (!value.is_array() || value.empty()) return value;
  return value[static_cast<size_t>(std::max(0L, tick - 1)) % value.size()];
}

inline bool is_lost(const Thing& thing) {
  const Thing& gpu = thing.parent == nullptr ? thing : *thing.parent;
  if (gpu.told.contains("lost_at_ms") && milliseconds() >= gpu.told["lost_at_ms"].get<long>())
    return true;
  return gpu.told.contains("lost_at") && gpu.tick >= gpu.told["lost_at"].get<long>();
}

inline bool is_dead(const Thing& thing) {
  const Thing& gpu = thing.parent == nullptr ? thing : *thing.parent;
  if (!world.told.contains("dead_ticks")) return false;
  return gpu.tick >= world.told["dead_ticks"][0] && gpu.tick <= world.told["dead_ticks"][1];
}

inline int state_of(const Thing& thing, const char* function) {
  if (world.lacks.contains(function)) return kMissing;
  if (is_lost(thing)) return kLost;
  return is_dead(thing) ? kUnknown : kSuccess;
}

// Blocks for ever if the scenario says so. Does not hold the lock, so other calls still return.
inline void hang_if_told() {
  const auto hangs = [] {
    const std::lock_guard<std::recursive_mutex> guard(world_mutex);
    return world.told.contains("hangs_at_ms") &&
           milliseconds() >= world.told["hangs_at_ms"].get<long>();
  };
  while (hangs()) std::this_thread::sleep_for(std::chrono::seconds(1));
}

inline unsigned counted_gpus() {
  auto count = static_cast<unsigned>(world.gpus.size());
  if (world.told.contains("count_at_ms"))
    for (const auto& [when, less] : world.told["count_at_ms"].items())
      if (milliseconds() >= std::stol(when)) count = less;
  return count;
}

inline Thing& thing_of(void* handle) { return *static_cast<Thing*>(handle); }

// Returns a number of a GPU or an instance, by the name of its member.
template <class Number>
inline int tell(void* handle, const char* function, const char* member, double scale,
                Number* number) {
  const Thing& thing = thing_of(handle);
  if (const int state = state_of(thing, function); state != kSuccess) return state;
  if (!thing.told.contains(member)) return kNotSupported;
  *number =
      static_cast<Number>(at_tick(thing.told[member], thing.tick).get<double>() * scale + 0.5);
  return kSuccess;
}

inline unsigned long long mib(const Thing& thing, const char* member) {
  if (!thing.told.contains(member)) return 0;
  return at_tick(thing.told[member], thing.tick).get<unsigned long long>() << 20;
}

// Converts the short form of a description to the long form.
inline json described_in_words(const std::string& text) {
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

inline std::unique_ptr<Thing> made(const json& told, int index, Thing* parent) {
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

inline int text_of(const std::string& value, char* text, unsigned bytes) {
  std::snprintf(text, bytes, "%s", value.c_str());
  return kSuccess;
}

}  // namespace fake_nvml
