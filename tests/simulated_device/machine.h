// SPDX-License-Identifier: Apache-2.0
//
// The devices, their streams, their memory: what every part of the backend acts on. One per
// process, since LibTorch holds one backend of this kind per process and reaches it through free
// functions. Thread-safe; no call returns with the lock held.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "simulated_device/arena.h"
#include "simulated_device/blocks.h"
#include "simulated_device/simulated_device.h"
#include "simulated_device/streams.h"

namespace convoy::simulated {

inline constexpr c10::DeviceType kDeviceType = c10::DeviceType::PrivateUse1;

struct Event {
  c10::DeviceIndex device = 0;
  Clock clock;
  std::thread::id recorder;
  bool is_asked = false;  // a query of it was answered with no
  bool is_timed = false;
  std::chrono::steady_clock::time_point time;
};

class Machine {
 public:
  explicit Machine(int devices);

  c10::DeviceIndex devices() const { return static_cast<c10::DeviceIndex>(memories_.size()); }

  // Memory. Null of zero bytes.
  char* allocate(c10::DeviceIndex device, size_t bytes);
  char* allocate_pinned(size_t bytes);
  // Takes the address of either view. False for an address that is not of this machine.
  bool release(void* address);
  char* device_view(const void* address) const;
  char* host_view(const void* address) const;
  bool is_pinned(const void* address) const { return pinned_.in_host_view(address); }
  // The device of an address in its view for the host, or the CPU.
  c10::Device device_of(const void* address) const;
  void record_stream(const void* address, c10::Stream stream);
  MemoryFigures memory(c10::DeviceIndex device) const;
  void reset_peak(c10::DeviceIndex device);
  size_t capacity(c10::DeviceIndex device) const;
  void set_capacity(c10::DeviceIndex device, size_t bytes);

  // Work: each piece lists its uses before it runs. Throws on a use without order, and on faults
  // found since the last piece.
  Moment submit(c10::Stream stream, const std::vector<Use>& uses);
  // Like submit(), for work that runs beside the host, on its own thread, from when it is reached
  // until it is let go. Until then queries are answered with no; waits for the work, and work that
  // is ordered after it, block.
  Moment hold(c10::Stream stream, const std::vector<Use>& uses);
  bool is_reached(const Moment& held) const;
  void let_go(const Moment& held);
  // Pinned memory that the host may not touch until it has waited for this work.
  void guard_pinned(const Moment& moment, const Use& use);

  // Order.
  c10::Stream create_stream(c10::DeviceIndex device);
  // A stream in the form of the device's libraries.
  void* native_handle(c10::Stream stream);
  c10::Stream stream_of(void* native_handle) const;
  void record(Event& event, c10::Stream stream);
  void block(const Event& event, c10::Stream stream);
  bool query(Event& event);
  bool query(c10::Stream stream);
  // Work of `later` from now on is after all of `earlier` so far.
  void order(c10::Stream earlier, c10::Stream later);

  // Waits of the host.
  void wait_for_event(const Event& event);
  void wait_for_stream(c10::Stream stream, const char* kind, bool always_waits);
  void wait_for_device(c10::DeviceIndex device);
  std::vector<HostWait> host_waits() const;
  void reset_host_waits();

  std::vector<std::string> take_findings();

  // The forbidden access of the host: "", or the block and its user. Does not block: for a signal
  // handler.
  std::string describe_forbidden(const void* address);

 private:
  struct Memory {
    Arena arena{Arena::Kind::Device};
    MemoryFigures figures;
    size_t capacity = Arena::kWindowBytes;
  };

  char* hand_out(c10::DeviceIndex device, size_t bytes);
  Moment enter(c10::Stream stream, const std::vector<Use>& uses);
  void await(std::unique_lock<std::mutex>& lock, const Clock& clock);
  void learn(const Clock& clock);
  void count_wait(const char* kind);
  void release_block(Block& block);
  void protect(const Block& block);

  mutable std::mutex mutex_;
  std::condition_variable let_go_;
  std::vector<std::unique_ptr<Memory>> memories_;
  Arena pinned_{Arena::Kind::Pinned};
  Blocks blocks_;
  Streams streams_;
  std::vector<char*> guarded_;  // pinned blocks with pending copies
  std::vector<Clock> asked_streams_;
  std::vector<HostWait> waits_;
  std::vector<std::string> findings_;
};

// The machine that install() made. It is never destroyed, since tensors may outlive any static.
// Throws before install().
Machine& machine();
void make_machine(int devices);

// The device and its stream that this thread works on.
c10::DeviceIndex current_device();
void set_current_device(c10::DeviceIndex device);
c10::Stream current_stream(c10::DeviceIndex device);
void set_current_stream(c10::Stream stream);

}  // namespace convoy::simulated
