// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/machine/visible_gpus.h"

#include "convoy/launch/place/visible_devices.h"

namespace convoy::apps {

VisibleGpus visible_gpus(const monitor::DeviceSources& sources,
                         const std::map<std::string, std::string>& environment, bool all) {
  VisibleGpus visible;
  const auto is_set = [&](const char* name) { return environment.contains(name); };
  if (all) return visible;
  if (!is_set("CUDA_VISIBLE_DEVICES") && !is_set("HIP_VISIBLE_DEVICES") &&
      !is_set("ROCR_VISIBLE_DEVICES"))
    return visible;
  const monitor::GpuList list = monitor::list_gpus_of_any_vendor(sources);
  const bool amd = !list.gpus.empty() && list.gpus[0].device.vendor == monitor::Vendor::Amd;
  if (!amd && !is_set("CUDA_VISIBLE_DEVICES")) return visible;
  const launch::DeviceSelection chosen =
      launch::select_devices(list.gpus, launch::selection_request(environment, ""));
  std::set<std::string> uuids;
  for (const monitor::Device& device : chosen.devices) uuids.insert(device.uuid);
  for (const monitor::Gpu& gpu : list.gpus) {
    bool seen = uuids.contains(gpu.device.uuid);
    for (const monitor::Device& instance : gpu.instances)
      seen = seen || uuids.contains(instance.uuid);
    if (!seen) ++visible.num_hidden;
  }
  visible.uuids = uuids;
  visible.hidden_by = !amd                             ? "CUDA_VISIBLE_DEVICES"
                      : is_set("HIP_VISIBLE_DEVICES")  ? "HIP_VISIBLE_DEVICES"
                      : is_set("ROCR_VISIBLE_DEVICES") ? "ROCR_VISIBLE_DEVICES"
                                                       : "CUDA_VISIBLE_DEVICES";
  return visible;
}

}  // namespace convoy::apps
