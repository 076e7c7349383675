// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/place/device_reader.h"

#include "convoy/launch/place/nvml.h"

namespace convoy::launch {

DeviceReader::DeviceReader(const DeviceSources& sources)
    : nvml_(std::make_unique<Nvml>(sources.nvml_library)) {}

DeviceReader::~DeviceReader() = default;

std::vector<DeviceReading> DeviceReader::read() const { return nvml_->readings(); }

}  // namespace convoy::launch
