// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "convoy/core/base/error.h"
#include "convoy/core/base/text_as.h"
#include "convoy/launch/place/visible_devices.h"

namespace convoy::launch {
namespace {

// A visible device and its spelling, by the user or by us.
struct Visible {
  Device device;
  std::string token;
};

std::vector<std::string> entries_of(const std::string& list) {
  std::vector<std::string> entries;
  size_t begin = 0;
  while (begin <= list.size()) {
    const size_t comma = std::min(list.find(',', begin), list.size());
    std::string entry = list.substr(begin, comma - begin);
    entry.erase(0, entry.find_first_not_of(" \t"));
    entry.erase(entry.find_last_not_of(" \t") + 1);
    entries.push_back(entry);
    begin = comma + 1;
  }
  return entries;
}

// CUDA reads numbers as C does: "1gpu" is 1, "" and "gpu" are no numbers.
int leading_number(const std::string& entry) {
  int number = -1;
  const char* begin = entry.data();
  const char* const end = begin + entry.size();
  if (begin != end && *begin == '+') ++begin;
  const auto [rest, error] = std::from_chars(begin, end, number);
  return error == std::errc() && rest != begin ? number : -1;
}

// Adds the devices that a program can compute on: the GPU itself, or its MIG instances.
void add_gpu(const Gpu& gpu, const std::string& token, std::vector<Visible>& visible) {
  if (!gpu.mig_enabled) visible.push_back({gpu.device, token});
  for (const Device& instance : gpu.instances) visible.push_back({instance, instance.uuid});
}

// "MIG-GPU-<uuid>/<gpu instance>/<compute instance>", the form of drivers before 470.
bool is_old_mig_name(const std::string& entry, const Gpu& gpu, const Device& instance) {
  return entry == fmt::format("MIG-{}/{}/{}", gpu.device.uuid, instance.gpu_instance,
                              instance.compute_instance);
}

// Reads CUDA_VISIBLE_DEVICES as CUDA and torch do; AMD's variables have the same form.
class VisibleList {
 public:
  VisibleList(const std::vector<Gpu>& gpus, const std::string& list, std::string variable)
      : gpus_(gpus), entries_(entries_of(list)), variable_(std::move(variable)) {}

  std::vector<Visible> read(std::vector<std::string>& notes) {
    // CUDA expects all entries in the form of the first; AMD's lists may mix numbers and UUIDs.
    const bool mixes = variable_ != "CUDA_VISIBLE_DEVICES";
    for (const std::string& entry : entries_) {
      const std::string prefix = prefix_of(mixes ? entry : entries_[0]);
      if (entry.empty() || entry == "-1" || !entry.starts_with(prefix)) break;
      const size_t before = visible_.size();
      if (!(prefix == "MIG-" ? add_instance(entry) : add_whole(entry, prefix))) {
        note_end(entry, notes);
        break;
      }
      if (repeats(before)) {
        notes.push_back(fmt::format("{} names {} twice, so no device is shown", variable_, entry));
        return {};
      }
    }
    return visible_;
  }

 private:
  static std::string prefix_of(const std::string& entry) {
    return entry.starts_with("MIG-") ? "MIG-" : entry.starts_with("GPU-") ? "GPU-" : "";
  }

  bool add_whole(const std::string& entry, const std::string& prefix) {
    if (prefix.empty()) {
      const int index = leading_number(entry);
      if (index < 0 || index >= static_cast<int>(gpus_.size())) return false;
      add_gpu(gpus_[static_cast<size_t>(index)], entry, visible_);
      return true;
    }
    const Gpu* match = nullptr;
    for (const Gpu& gpu : gpus_) {
      if (!gpu.device.uuid.starts_with(entry)) continue;
      if (match != nullptr) return false;
      match = &gpu;
    }
    if (match != nullptr) add_gpu(*match, entry, visible_);
    return match != nullptr;
  }

  bool add_instance(const std::string& entry) {
    const Device* match = nullptr;
    for (const Gpu& gpu : gpus_)
      for (const Device& instance : gpu.instances) {
        if (!instance.uuid.starts_with(entry) && !is_old_mig_name(entry, gpu, instance)) continue;
        if (match != nullptr && instance.uuid != entry) return false;
        match = &instance;
      }
    if (match != nullptr) visible_.push_back({*match, entry});
    return match != nullptr;
  }

  bool repeats(size_t before) const {
    for (size_t late = before; late < visible_.size(); ++late)
      for (size_t early = 0; early < before; ++early)
        if (visible_[early].device.uuid == visible_[late].device.uuid) return true;
    return false;
  }

  void note_end(const std::string& entry, std::vector<std::string>& notes) const {
    notes.push_back(
        fmt::format("{} names {}, which this host does not have, so the list ends before it",
                    variable_, entry));
  }

  const std::vector<Gpu>& gpus_;
  std::vector<std::string> entries_;
  std::string variable_;
  std::vector<Visible> visible_;
};

std::vector<Visible> all_visible(const std::vector<Gpu>& gpus) {
  std::vector<Visible> visible;
  for (size_t index = 0; index < gpus.size(); ++index)
    add_gpu(gpus[index], std::to_string(index), visible);
  return visible;
}

// ROCR_VISIBLE_DEVICES filters first. The numbers in HIP_VISIBLE_DEVICES, or without it in
// CUDA_VISIBLE_DEVICES, count the devices that are left.
std::vector<Visible> visible_of_amd(const std::vector<Gpu>& gpus, const SelectionRequest& request,
                                    std::vector<std::string>& notes) {
  std::vector<Gpu> left = gpus;
  if (request.rocr_visible_devices) {
    left.clear();
    for (const Visible& each :
         VisibleList(gpus, *request.rocr_visible_devices, "ROCR_VISIBLE_DEVICES").read(notes))
      left.push_back({.device = each.device});
  }
  if (request.hip_visible_devices)
    return VisibleList(left, *request.hip_visible_devices, "HIP_VISIBLE_DEVICES").read(notes);
  if (request.cuda_visible_devices)
    return VisibleList(left, *request.cuda_visible_devices, "CUDA_VISIBLE_DEVICES").read(notes);
  return all_visible(left);
}

const Visible& find_wanted(const std::vector<Visible>& visible, const std::string& wanted) {
  const bool by_uuid = wanted.starts_with("GPU-") || wanted.starts_with("MIG-");
  int position = -1;
  if (by_uuid) {
    for (size_t index = 0; index < visible.size(); ++index)
      if (visible[index].device.uuid.starts_with(wanted) || visible[index].token == wanted)
        position = static_cast<int>(index);
  } else {
    position = text_as<int>(wanted).value_or(-1);
  }
  if (position >= 0 && position < static_cast<int>(visible.size()))
    return visible[static_cast<size_t>(position)];
  throw ConfigError(
      fmt::format(
          "--gpu-ids: wanted numbers among the {} visible devices, or their UUIDs, found `{}`",
          visible.size(), wanted),
      {.hint = "`convoy launch --dry-run` lists the devices; CUDA_VISIBLE_DEVICES may hide some"});
}

std::vector<Visible> choose(const std::vector<Visible>& visible, const std::string& gpu_ids) {
  std::vector<Visible> chosen;
  for (const std::string& wanted : entries_of(gpu_ids)) {
    const Visible& found = find_wanted(visible, wanted);
    for (const Visible& earlier : chosen)
      if (earlier.device.uuid == found.device.uuid)
        throw ConfigError(fmt::format("--gpu-ids names {} twice", wanted),
                          {.hint = "name each device once"});
    chosen.push_back(found);
  }
  return chosen;
}

bool several_models(const std::vector<Gpu>& gpus) {
  return std::any_of(gpus.begin(), gpus.end(),
                     [&](const Gpu& gpu) { return gpu.device.name != gpus[0].device.name; });
}

}  // namespace

SelectionRequest selection_request(const std::map<std::string, std::string>& environment,
                                   const std::string& gpu_ids) {
  SelectionRequest request;
  const auto list = environment.find("CUDA_VISIBLE_DEVICES");
  if (list != environment.end()) request.cuda_visible_devices = list->second;
  const auto order = environment.find("CUDA_DEVICE_ORDER");
  if (order != environment.end()) request.cuda_device_order = order->second;
  const auto hip = environment.find("HIP_VISIBLE_DEVICES");
  if (hip != environment.end()) request.hip_visible_devices = hip->second;
  const auto rocr = environment.find("ROCR_VISIBLE_DEVICES");
  if (rocr != environment.end()) request.rocr_visible_devices = rocr->second;
  request.gpu_ids = gpu_ids;
  return request;
}

DeviceSelection select_devices(const std::vector<Gpu>& gpus, const SelectionRequest& request) {
  DeviceSelection selection;
  const bool amd = !gpus.empty() && gpus[0].device.vendor == monitor::Vendor::Amd;
  std::vector<Visible> visible =
      amd ? visible_of_amd(gpus, request, selection.notes)
      : request.cuda_visible_devices
          ? VisibleList(gpus, *request.cuda_visible_devices, selection.variable)
                .read(selection.notes)
          : all_visible(gpus);
  if (amd) selection.variable = "HIP_VISIBLE_DEVICES";
  if (!request.gpu_ids.empty()) visible = choose(visible, request.gpu_ids);
  for (const Visible& each : visible) {
    selection.devices.push_back(each.device);
    selection.tokens.push_back(each.token);
    if (each.device.mig) selection.one_device_per_rank = true;
  }
  if (!request.gpu_ids.empty() || selection.one_device_per_rank)
    selection.cuda_visible_devices = fmt::format("{}", fmt::join(selection.tokens, ","));
  // By default CUDA numbers the fastest GPU first, NVML by PCI address. The numbers are the same
  // when all GPUs are of one model.
  if (!amd && !selection.devices.empty() && several_models(gpus) &&
      request.cuda_device_order != "PCI_BUS_ID")
    selection.notes.emplace_back(
        "the GPUs are not of one model and CUDA numbers the fastest first, so the GPU shown "
        "for a rank may be another one; CUDA_DEVICE_ORDER=PCI_BUS_ID makes it certain");
  return selection;
}

std::string why_not_for_workers(const std::vector<Gpu>& gpus) {
  if (gpus.empty() || gpus[0].device.vendor != monitor::Vendor::Amd) return "";
  return "Convoy's own commands compute on NVIDIA's GPUs alone; `convoy launch` places programs on "
         "AMD's";
}

}  // namespace convoy::launch
