// SPDX-License-Identifier: Apache-2.0
//
// A device for tests, `sim`, that proves GPU code paths without a GPU. Its ops give the results of
// the CPU's ops, bit for bit. These faults, which a GPU may hide, are detected at once and every
// time:
//  - the host touches device memory: SIGSEGV, after a report that names the block and the place;
//  - an op gets a tensor of another device: an error that names both devices;
//  - an op has no CUDA kernel in LibTorch, or a matrix product has none for its type: an error;
//  - two streams use the same bytes without an event or wait between them, or a block is freed
//    while another stream may still use it: an error that names ops, streams and block;
//  - the host writes a pinned buffer that a copy may still read, or reads a buffer that a copy may
//    still write: SIGSEGV, with a report.
// Waits of the host for a device, and the memory of each device, are counted.
//
// A test program links convoy_simulated_device and calls `install` first in its main. Several
// devices live in one process: sim:0, sim:1, ... LibTorch has one backend of this kind per process,
// so all functions below act on the process. Everything is thread-safe.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace convoy::simulated {

// Registers `devices` simulated devices with LibTorch. A second call with the same number or fewer
// does nothing; with more it throws. Call it before the first backward pass of the process, because
// LibTorch's engine counts devices only once.
void install(int devices);
bool is_installed();

// Returns the device sim:`index`.
c10::Device device(int index = 0);

// One occasion on which the host had to wait for a device.
struct HostWait {
  std::string kind;    // "copy to host", "copy to device", "value on host", "shape on host",
                       // "stream", "event", "device"; "question": an event is asked again and again
  std::string origin;  // the op, and the outermost op or node of backward that it belongs to
};

// Returns the waits of all threads since the last reset. A copy between a device and host memory
// waits unless it is non_blocking and the host memory is pinned. Another wait for work that the
// host has waited for already does not count.
std::vector<HostWait> host_waits();
void reset_host_waits();

struct MemoryFigures {
  size_t live_bytes = 0;
  size_t peak_bytes = 0;  // since the last reset
  int64_t allocations = 0;
};
// Returns the figures that at::accelerator::getDeviceStats gives.
MemoryFigures memory(int device = 0);
void reset_peak(int device = 0);

// Sets the limit beyond which allocations throw c10::OutOfMemoryError, as on CUDA. With 0 bytes
// only the host's memory is a limit.
void set_capacity(int device, size_t bytes);

// Returns the faults that were found where nothing could be thrown, for example a block that was
// freed too early. If they are not taken, the next work of any device throws them, or the process
// ends with code 1.
std::vector<std::string> take_findings();

}  // namespace convoy::simulated
