// SPDX-License-Identifier: Apache-2.0
//
// The device's random number generator: for the same seed it gives the numbers of the CPU's
// generator, with a state of its own.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

namespace convoy::simulated {

at::Generator make_generator(c10::DeviceIndex device, uint64_t seed);

// Returns the CPU generator inside `generator`. Throws if `generator` is not of this device.
at::Generator& inner_generator(at::Generator& generator, c10::Device device);

// Returns the generator of ops that are called without one.
at::Generator& default_generator(c10::DeviceIndex device);

}  // namespace convoy::simulated
