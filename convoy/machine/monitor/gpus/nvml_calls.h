// SPDX-License-Identifier: Apache-2.0
//
// The part of NVML's C interface that Convoy calls: our own declarations, so that nothing of NVIDIA
// is needed to build. A driver may lack any of the functions; load() needs only functions that all
// drivers since 450 have.
#pragma once

#include <array>
#include <string>

namespace convoy::monitor::nvml {

// Return codes.
constexpr int kSuccess = 0;
constexpr int kUninitialized = 1;
constexpr int kInvalidArgument = 2;
constexpr int kNotSupported = 3;
constexpr int kNoPermission = 4;
constexpr int kInsufficientSize = 7;
constexpr int kDriverNotLoaded = 9;
constexpr int kFunctionNotFound = 13;
constexpr int kGpuIsLost = 15;
constexpr int kResetRequired = 16;
constexpr int kVersionMismatch = 18;  // the library and the kernel module differ
constexpr int kOtherVersion = 25;     // a struct has another version
constexpr int kDeprecated = 26;
constexpr int kUnknownError = 999;

constexpr unsigned kTextBytes = 96;  // NVML's largest name or UUID
constexpr unsigned kMostLinks = 18;  // NVLinks of one GPU

struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device_id;
  unsigned pci_subsystem_id;
  char bus_id[32];
};

struct MemoryInfo {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

// `used` leaves out the memory that the driver keeps for itself. MemoryInfo::used includes it since
// R510.
struct MemoryInfo2 {
  unsigned version = sizeof(MemoryInfo2) | (2U << 24);
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};

struct Utilization {
  unsigned gpu;
  unsigned memory;
};

struct FieldValue {
  unsigned field = 0;
  unsigned scope = 0;
  long long timestamp = 0;
  long long latency_us = 0;
  int type = 0;
  int result = kNotSupported;
  union {
    double as_double;
    unsigned as_unsigned;
    unsigned long as_long;
    unsigned long long as_long_long = 0;
    long long as_signed_long_long;
    int as_signed;
    unsigned short as_short;
  };
};

struct GpmSupport {
  unsigned version = 1;
  unsigned supported = 0;
};

struct GpmMetric {
  unsigned id = 0;
  int result = kNotSupported;
  double value = 0;
  const char* short_name = nullptr;
  const char* long_name = nullptr;
  const char* unit = nullptr;
};

struct GpmQuery {
  unsigned version = 1;
  unsigned count = 0;
  void* earlier = nullptr;
  void* later = nullptr;
  // Only the first `count` matter. NVML's own array grew from 98 to 333 elements, and a library may
  // copy the whole array.
  std::array<GpmMetric, 333> metrics;
};

struct Process {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance;
  unsigned compute_instance;
};

struct Event {
  void* device;
  unsigned long long kind;
  unsigned long long data;  // the Xid, if kind is kXidEvent
  unsigned gpu_instance;
  unsigned compute_instance;
};
constexpr unsigned long long kXidEvent = 8;

struct Calls {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle_by_index)(unsigned, void**) = nullptr;
  int (*uuid)(void*, char*, unsigned) = nullptr;
  int (*name)(void*, char*, unsigned) = nullptr;
  int (*pci_info)(void*, PciInfo*) = nullptr;
  int (*memory_info)(void*, MemoryInfo*) = nullptr;
  // Functions that a driver may lack.
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*nvml_version)(char*, unsigned) = nullptr;
  int (*cuda_version)(int*) = nullptr;
  int (*memory_info_2)(void*, MemoryInfo2*) = nullptr;
  int (*utilization)(void*, Utilization*) = nullptr;
  int (*temperature)(void*, int, unsigned*) = nullptr;
  int (*power_milliwatts)(void*, unsigned*) = nullptr;
  int (*power_limit_milliwatts)(void*, unsigned*) = nullptr;
  int (*energy_millijoules)(void*, unsigned long long*) = nullptr;
  int (*clock_mhz)(void*, int, unsigned*) = nullptr;
  int (*performance_state)(void*, int*) = nullptr;
  int (*clock_event_reasons)(void*, unsigned long long*) = nullptr;
  int (*field_values)(void*, int, FieldValue*) = nullptr;
  int (*ecc_errors)(void*, int, int, unsigned long long*) = nullptr;
  int (*remapped_rows)(void*, unsigned*, unsigned*, unsigned*, unsigned*) = nullptr;
  int (*compute_processes)(void*, unsigned*, Process*) = nullptr;
  int (*compute_capability)(void*, int*, int*) = nullptr;
  int (*mig_mode)(void*, unsigned*, unsigned*) = nullptr;
  int (*max_mig_devices)(void*, unsigned*) = nullptr;
  int (*mig_handle_by_index)(void*, unsigned, void**) = nullptr;
  int (*gpu_instance_id)(void*, unsigned*) = nullptr;
  int (*compute_instance_id)(void*, unsigned*) = nullptr;
  int (*gpm_support)(void*, GpmSupport*) = nullptr;
  int (*gpm_alloc)(void**) = nullptr;
  int (*gpm_free)(void*) = nullptr;
  int (*gpm_sample)(void*, void*) = nullptr;
  int (*gpm_mig_sample)(void*, unsigned, void*) = nullptr;
  int (*gpm_metrics)(GpmQuery*) = nullptr;
  int (*common_ancestor)(void*, void*, int*) = nullptr;
  int (*p2p_status)(void*, void*, int, int*) = nullptr;
  int (*link_state)(void*, unsigned, unsigned*) = nullptr;
  int (*link_remote_pci)(void*, unsigned, PciInfo*) = nullptr;
  int (*event_set_create)(void**) = nullptr;
  int (*event_set_free)(void*) = nullptr;
  int (*register_events)(void*, unsigned long long, void*) = nullptr;
  int (*event_wait)(void*, Event*, unsigned) = nullptr;

  // The name of a needed function that the library lacks; empty = all are there.
  std::string load(void* library);
  bool knows_mig() const {
    return mig_mode && max_mig_devices && mig_handle_by_index && gpu_instance_id &&
           compute_instance_id;
  }
  bool supports_gpm() const {
    return gpm_support && gpm_alloc && gpm_free && gpm_sample && gpm_metrics;
  }
  // text() and error() replace control characters, since their results are shown on terminals.
  std::string text(int (*function)(void*, char*, unsigned), void* handle) const;
  // NVML's text for `code`.
  std::string error(int code) const;
};

}  // namespace convoy::monitor::nvml
