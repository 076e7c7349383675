// SPDX-License-Identifier: Apache-2.0
//
// The structs that NVML's functions fill, with the layout of nvml.h.
#pragma once

namespace fake_nvml {

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

}  // namespace fake_nvml
