// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/gpus/metrics.h"

namespace convoy::monitor {
namespace {

constexpr double kPercent = 100;
constexpr double kMibPerS = 1e8;      // 100 TB/s: far beyond any link
constexpr double kMostMib = 1 << 30;  // a pebibyte
constexpr double kCounter =
    9.0e15;  // a double counts exactly up to here; sentinels of 64 bits lie above
constexpr double kBytesOfMib = 1024.0 * 1024.0;
constexpr double kShare = 0.01;  // one percent: DCGM's profiling fields are shares

}  // namespace

const std::array<MetricFacts, kNumMetrics>& metric_table() {
  using M = Metric;
  static const std::array<MetricFacts, kNumMetrics> table = {{
      {M::GpuUtil, "gpu_util_pct", "DCGM_FI_DEV_GPU_UTIL", 1, 0, kPercent,
       "share of the driver's sample period in which a kernel was resident, waiting ones too"},
      {M::MemBusy, "mem_busy_pct", "DCGM_FI_DEV_MEM_COPY_UTIL", 1, 0, kPercent,
       "share of that period in which memory was read or written"},
      {M::SmActive, "sm_active_pct", "DCGM_FI_PROF_SM_ACTIVE", kShare, 1, kPercent,
       "share of the interval in which the multiprocessors had work, mean over them (GPM: Hopper "
       "and newer)"},
      {M::SmOccupancy, "sm_occupancy_pct", "DCGM_FI_PROF_SM_OCCUPANCY", kShare, 1, kPercent,
       "active warps, of the most that fit"},
      {M::TensorActive, "tensor_active_pct", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", kShare, 1, kPercent,
       "share of the interval in which the tensor cores worked"},
      {M::DramActive, "dram_active_pct", "DCGM_FI_PROF_DRAM_ACTIVE", kShare, 1, kPercent,
       "memory traffic, of the most that the memory can do"},
      {M::Fp64Active, "fp64_pct", "DCGM_FI_PROF_PIPE_FP64_ACTIVE", kShare, 1, kPercent,
       "share of the interval in which the fp64 units worked"},
      {M::Fp32Active, "fp32_pct", "DCGM_FI_PROF_PIPE_FP32_ACTIVE", kShare, 1, kPercent,
       "the same of fp32"},
      {M::Fp16Active, "fp16_pct", "DCGM_FI_PROF_PIPE_FP16_ACTIVE", kShare, 1, kPercent,
       "the same of fp16, tensor cores not counted"},
      {M::MemUsed, "mem_used_mib", "DCGM_FI_DEV_FB_USED", 1, 0, kMostMib,
       "memory that processes hold, without the driver's own"},
      {M::MemReserved, "mem_reserved_mib", "DCGM_FI_DEV_FB_RESERVED", 1, 0, kMostMib,
       "memory that the driver keeps for itself"},
      {M::MemTotal, "mem_total_mib", "DCGM_FI_DEV_FB_TOTAL", 1, 0, kMostMib,
       "memory of the device"},
      {M::Power, "power_w", "DCGM_FI_DEV_POWER_USAGE", 1, 1, 1e5,
       "power draw; on most GPUs since Ampere a mean over 1 s"},
      {M::PowerLimit, "power_limit_w", "DCGM_FI_DEV_ENFORCED_POWER_LIMIT", 1, 0, 1e5,
       "the limit that holds now"},
      {M::Energy, "energy_j", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 1000, 3, kCounter,
       "the GPU's own counter since the driver was loaded: differences are energy"},
      {M::SmClock, "sm_clock_mhz", "DCGM_FI_DEV_SM_CLOCK", 1, 0, 1e5,
       "clock of the multiprocessors"},
      {M::MemClock, "mem_clock_mhz", "DCGM_FI_DEV_MEM_CLOCK", 1, 0, 1e5, "clock of the memory"},
      {M::Temperature, "temp_c", "DCGM_FI_DEV_GPU_TEMP", 1, 0, 200, "temperature of the chip"},
      {M::MemTemperature, "mem_temp_c", "DCGM_FI_DEV_MEMORY_TEMP", 1, 0, 200,
       "temperature of the memory"},
      {M::PerformanceState, "pstate", "DCGM_FI_DEV_PSTATE", 1, 0, 15,
       "0 is the fastest state, 15 the slowest"},
      {M::PcieTx, "pcie_tx_mib_s", "DCGM_FI_PROF_PCIE_TX_BYTES", kBytesOfMib, 1, kMibPerS,
       "sent over PCIe (GPM)"},
      {M::PcieRx, "pcie_rx_mib_s", "DCGM_FI_PROF_PCIE_RX_BYTES", kBytesOfMib, 1, kMibPerS,
       "received over PCIe (GPM)"},
      {M::NvlinkTx, "nvlink_tx_mib_s", "DCGM_FI_PROF_NVLINK_TX_BYTES", kBytesOfMib, 1, kMibPerS,
       "sent over all NVLinks"},
      {M::NvlinkRx, "nvlink_rx_mib_s", "DCGM_FI_PROF_NVLINK_RX_BYTES", kBytesOfMib, 1, kMibPerS,
       "received over all NVLinks"},
      {M::ThrottlePowerNs, "throttle_power_ns", "DCGM_FI_DEV_POWER_VIOLATION", 1, 0, kCounter,
       "time slowed by the power limit, a counter"},
      {M::ThrottleSoftHeatNs, "throttle_sw_thermal_ns", "DCGM_FI_DEV_THERMAL_VIOLATION", 1, 0,
       kCounter, "time slowed by the driver for heat, a counter"},
      {M::ThrottleHardHeatNs, "throttle_hw_thermal_ns", nullptr, 1, 0, kCounter,
       "time slowed by the chip for heat, a counter"},
      {M::ThrottleBrakeNs, "throttle_hw_brake_ns", nullptr, 1, 0, kCounter,
       "time slowed by the power supply's brake signal, a counter"},
      {M::EccCorrected, "ecc_corr_volatile", "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", 1, 0, kCounter,
       "memory errors corrected since the driver was loaded"},
      {M::EccUncorrected, "ecc_uncorr_volatile", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 1, 0, kCounter,
       "memory errors not corrected since the driver was loaded"},
      {M::RemapPending, "row_remap_pending", "DCGM_FI_DEV_ROW_REMAP_PENDING", 1, 0, 1,
       "1: a bad row waits for a reset to be replaced"},
      {M::RemapFailed, "row_remap_failed", "DCGM_FI_DEV_ROW_REMAP_FAILURE", 1, 0, 1,
       "1: a bad row could not be replaced: replace the GPU"},
      {M::Processes, "processes", nullptr, 1, 0, 1e6, "processes that compute on it"},
  }};
  return table;
}

const MetricFacts& facts_of(Metric metric) { return metric_table()[static_cast<size_t>(metric)]; }

const std::vector<ThrottleKind>& throttle_kinds() {
  static const std::vector<ThrottleKind> kinds = {
      {0x4, "sw_power", Metric::ThrottlePowerNs},
      {0x20, "sw_thermal", Metric::ThrottleSoftHeatNs},
      {0x40, "hw_thermal", Metric::ThrottleHardHeatNs},
      {0x80, "hw_brake", Metric::ThrottleBrakeNs},
      {0x8, "hw_slowdown", {}},
      {0x10, "sync_boost", {}},
  };
  return kinds;
}

std::string throttle_text(unsigned long long reasons) {
  std::string words;
  for (const ThrottleKind& kind : throttle_kinds()) {
    if ((reasons & kind.bit) == 0) continue;
    if (!words.empty()) words += '+';
    words += kind.word;
  }
  return words.empty() ? "none" : words;
}

}  // namespace convoy::monitor
