// SPDX-License-Identifier: Apache-2.0
//
// After NVIDIA's Xid catalog (https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html,
// 2026). A fault is Fatal if its remedy there is RESET_GPU, a restart of the machine, new firmware,
// CHECK_MECHANICALS, WORKFLOW_XID_48 or WORKFLOW_NVLINK_ERR, or if the catalog calls it fatal
// without a remedy. A fault is Application if its remedy is RESTART_APP or CHECK_APP, or if it is
// the end of a program. All other faults are a Warning. The catalog is not followed for 155 (an
// NVLink that was taken down on purpose) and 156 (memory was retired, which a later reset
// completes): work goes on. 144 to 150 carry their severity in a field that NVML does not pass on;
// when they matter, 48, 94 or 95 follows.
#include "convoy/machine/monitor/gpus/xid.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace convoy::monitor {
namespace {

constexpr XidSeverity kFatal = XidSeverity::Fatal;
constexpr XidSeverity kApplication = XidSeverity::Application;
constexpr XidSeverity kWarning = XidSeverity::Warning;

constexpr const char* kReset =
    "reset the GPU (nvidia-smi --gpu-reset) or reboot the host; if it comes again, have it "
    "replaced";
constexpr const char* kReboot =
    "power the host off and on, look at its PCIe slot and power supply; if it comes again, have "
    "the "
    "GPU replaced";
constexpr const char* kProgram = "look for the fault in the program: compute-sanitizer PROGRAM";
constexpr const char* kRestart = "start the program again";
constexpr const char* kNothing = "no action is needed now";
constexpr const char* kMaintenance =
    "reset the GPU when it is idle, and watch whether it comes again";

struct Row {
  int first;
  int last;
  XidSeverity severity;
  const char* meaning;
  const char* to_do;
};

constexpr Row kRows[] = {
    {8, 8, kApplication, "the GPU stopped processing", kRestart},
    {11, 11, kApplication, "invalid or corrupted commands", kProgram},
    {13, 13, kApplication, "graphics engine exception: a kernel did something illegal", kProgram},
    {25, 25, kApplication, "invalid or illegal commands", kProgram},
    {31, 31, kApplication, "GPU memory page fault: a kernel used an address that is not its own",
     kProgram},
    {32, 32, kApplication, "invalid or corrupted commands", kProgram},
    {37, 38, kWarning, "driver firmware error", kNothing},
    {39, 41, kApplication, "copy engine exception", kRestart},
    {43, 43, kApplication, "a program's channel was reset after a fault of its own", kProgram},
    {44, 44, kWarning, "graphics engine fault during a context switch", kNothing},
    {45, 45, kApplication, "the driver cleans up after a program that was ended", kNothing},
    {46, 46, kFatal, "the GPU stopped processing", kReset},
    {48, 48, kFatal, "double bit ECC error: memory that cannot be corrected", kReset},
    {54, 54, kFatal, "auxiliary power is not connected to the board",
     "look at the power cables of the GPU"},
    {62, 62, kFatal, "internal micro-controller halt", kReset},
    {63, 63, kWarning, "a memory row is remapped", kMaintenance},
    {64, 64, kFatal, "a memory row could not be remapped", kReset},
    {66, 67, kWarning, "illegal access by the driver", kNothing},
    {68, 69, kApplication, "exception of an engine that a program uses", kProgram},
    {70, 72, kApplication, "copy engine error", kRestart},
    {74, 74, kFatal, "NVLink error: a link to another GPU or to a switch is broken", kReset},
    {75, 77, kApplication, "copy engine error", kRestart},
    {78, 78, kFatal, "the virtual GPU did not start", "update the driver of host and guest"},
    {79, 79, kFatal, "the GPU has fallen off the bus", kReboot},
    {80, 80, kApplication, "corrupted data were sent to the GPU", kProgram},
    {82, 86, kApplication, "error of a video or image engine", kRestart},
    {88, 89, kApplication, "error of a video engine", kRestart},
    {92, 92, kWarning, "high rate of corrected single bit ECC errors", kMaintenance},
    {93, 93, kWarning, "the InfoROM may not be written more often", kNothing},
    {94, 94, kApplication, "memory error, contained: the program that used it has lost its data",
     "start the program again, and reset the GPU when it is idle"},
    {95, 95, kFatal, "memory error, not contained: all programs on the GPU may have lost data",
     kReset},
    {96, 105, kApplication, "error of a video or image engine", kRestart},
    {109, 109, kFatal, "context switch timeout", kReset},
    {110, 110, kFatal, "security fault",
     "undo the last change of the hardware and power the host off and on"},
    {119, 119, kFatal, "timeout of the GPU's system processor (GSP RPC)", kReset},
    {120, 120, kFatal, "error of the GPU's system processor (GSP)", kReset},
    {121, 121, kWarning, "corrected errors on the link to the Grace CPU", kMaintenance},
    {126, 135, kApplication, "copy engine error", kRestart},
    {136, 136, kFatal, "training of an NVLink failed", kReset},
    {137, 137, kApplication, "illegal access to another GPU's memory over NVLink", kProgram},
    {139, 139, kApplication, "error of the optical flow engine", kRestart},
    {140, 140, kFatal, "memory errors that can neither be corrected nor remapped", kReset},
    {141, 141, kWarning, "error in a fast path of CUDA", kNothing},
    {143, 143, kFatal, "the GPU could not be initialised", kReset},
    {144, 150, kWarning, "NVLink error that may be harmless", kMaintenance},
    {151, 151, kFatal, "key rotation error", "start the virtual machine again"},
    {154, 154, kWarning, "the driver names the remedy of another Xid: see the kernel's log",
     "read dmesg"},
    {155, 155, kWarning, "an NVLink was taken down", "read dmesg"},
    {156, 156, kWarning, "a part of the memory is retired", kMaintenance},
    {157, 157, kWarning, "a part of the memory could not be retired", kMaintenance},
    {158, 158, kFatal, "fatal timeout of the GPU", kReset},
    {160, 161, kWarning, "a memory channel is retired", kMaintenance},
    {163, 165, kWarning, "power smoothing is off or wears out", kNothing},
    {167, 167, kFatal, "fatal timeout on PCIe", kReset},
    {169, 169, kFatal, "internal micro-controller halt", kReset},
    {171, 172, kFatal, "uncorrectable memory error, beside Xid 48", kReset},
};

}  // namespace

XidFacts xid_facts(uint64_t xid) {
  const auto found = std::find_if(std::begin(kRows), std::end(kRows), [xid](const Row& row) {
    return static_cast<uint64_t>(row.first) <= xid && xid <= static_cast<uint64_t>(row.last);
  });
  if (found == std::end(kRows))
    return {XidSeverity::Warning, "a fault that is not in Convoy's list",
            "look it up in NVIDIA's Xid catalog"};
  return {found->severity, found->meaning, found->to_do};
}

}  // namespace convoy::monitor
