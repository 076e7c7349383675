// SPDX-License-Identifier: Apache-2.0
#include "simulated_device/generator.h"

#include <ATen/CPUGeneratorImpl.h>

#include <vector>

#include "simulated_device/machine.h"

namespace convoy::simulated {
namespace {

class SimulatedGenerator final : public c10::GeneratorImpl {
 public:
  SimulatedGenerator(c10::DeviceIndex device, at::Generator cpu_generator)
      : GeneratorImpl(c10::Device(kDeviceType, device),
                      c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        inner(std::move(cpu_generator)) {}

  void set_current_seed(uint64_t seed) override { inner.set_current_seed(seed); }
  void set_offset(uint64_t offset) override { inner.unsafeGetGeneratorImpl()->set_offset(offset); }
  uint64_t get_offset() const override { return inner.unsafeGetGeneratorImpl()->get_offset(); }
  uint64_t current_seed() const override { return inner.current_seed(); }
  uint64_t seed() override { return inner.unsafeGetGeneratorImpl()->seed(); }
  void set_state(const c10::TensorImpl& state) override {
    inner.unsafeGetGeneratorImpl()->set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return inner.unsafeGetGeneratorImpl()->get_state();
  }

  at::Generator inner;

 private:
  SimulatedGenerator* clone_impl() const override {
    return new SimulatedGenerator(device().index(), inner.clone());
  }
};

}  // namespace

at::Generator make_generator(c10::DeviceIndex device, uint64_t seed) {
  return at::make_generator<SimulatedGenerator>(device, at::detail::createCPUGenerator(seed));
}

at::Generator& inner_generator(at::Generator& generator, c10::Device device) {
  TORCH_CHECK(generator.device() == device, "an op of ", device, " was given a generator of ",
              generator.device());
  return static_cast<SimulatedGenerator*>(generator.unsafeGetGeneratorImpl())->inner;
}

at::Generator& default_generator(c10::DeviceIndex device) {
  static auto* generators = [] {
    auto* made = new std::vector<at::Generator>;
    for (c10::DeviceIndex i = 0; i < machine().devices(); ++i)
      made->push_back(make_generator(i, c10::default_rng_seed_val));
    return made;
  }();
  return generators->at(device < 0 ? current_device() : device);
}

}  // namespace convoy::simulated
