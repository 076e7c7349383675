// SPDX-License-Identifier: Apache-2.0
#include "simulated_device/guard.h"

#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "simulated_device/machine.h"

namespace convoy::simulated {
namespace {

Event& event_of(void* event) { return *static_cast<Event*>(event); }

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kDeviceType; }
  c10::DeviceIndex deviceCount() const noexcept override { return machine().devices(); }

  c10::Device getDevice() const override { return {kDeviceType, current_device()}; }
  void setDevice(c10::Device device) const override { set_current_device(device.index()); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    set_current_device(device.index());
  }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }

  c10::Stream getDefaultStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, indexed(device));
  }
  c10::Stream getStream(c10::Device device) const override {
    return current_stream(indexed(device).index());
  }
  c10::Stream getNewStream(c10::Device device, int) const override {
    return machine().create_stream(indexed(device).index());
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return getNewStream(device, 0);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const c10::Stream before = current_stream(stream.device_index());
    set_current_stream(stream);
    return before;
  }
  void* getStreamNativeHandle(const c10::Stream stream) const override {
    return machine().native_handle(stream);
  }
  bool queryStream(const c10::Stream& stream) const override { return machine().query(stream); }
  void synchronizeStream(const c10::Stream& stream) const override {
    machine().wait_for_stream(stream, "stream", false);
  }
  void synchronizeDevice(c10::DeviceIndex device) const override {
    machine().wait_for_device(device);
  }
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    machine().record_stream(data.get(), stream);
  }

  void record(void** event, const c10::Stream& stream, c10::DeviceIndex device,
              c10::EventFlag flag) const override {
    TORCH_CHECK(device < 0 || device == stream.device_index(), "an event of sim:", int{device},
                " was recorded on a stream of ", stream.device());
    if (*event == nullptr) *event = new Event;
    event_of(*event).device = stream.device_index();
    event_of(*event).is_timed = flag == c10::EventFlag::BACKEND_DEFAULT;
    machine().record(event_of(*event), stream);
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event != nullptr) machine().block(event_of(event), stream);
  }
  bool queryEvent(void* event) const override {
    return event == nullptr || machine().query(event_of(event));
  }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) machine().wait_for_event(event_of(event));
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    delete static_cast<Event*>(event);
  }
  double elapsedTime(void* from, void* to, c10::DeviceIndex) const override {
    TORCH_CHECK(
        from != nullptr && to != nullptr && event_of(from).is_timed && event_of(to).is_timed,
        "both events must have been recorded, with timing enabled");
    return std::chrono::duration<double, std::milli>(event_of(to).time - event_of(from).time)
        .count();
  }

 private:
  static c10::Device indexed(c10::Device device) {
    return device.has_index() ? device : c10::Device(kDeviceType, current_device());
  }
};

}  // namespace

void register_guard() { c10::impl::registerDeviceGuard(kDeviceType, new Guard); }

}  // namespace convoy::simulated
