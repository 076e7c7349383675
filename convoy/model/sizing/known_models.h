// SPDX-License-Identifier: Apache-2.0
//
// The sizes of models and machines that presets are made for, so that memory can be computed
// without the model or the machine. Sizes of models come from their config.json on the hub.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "convoy/model/architecture/decoder_spec.h"
#include "convoy/model/sizing/memory_estimate.h"

namespace convoy::sizing {

// Finds a model by its hub id, "Qwen/Qwen2.5-7B-Instruct", in any case; none for a model that is
// not in the list.
std::optional<architecture::DecoderSpec> known_model(const std::string& hub_id);

struct Machine {
  std::string name = {};   // "rtx4090x2"
  std::string words = {};  // "2x RTX 4090"
  Hardware hardware = Hardware::Gpu;
  int devices = 1;             // a rank on each
  int64_t device_bytes = 0;    // as the driver reports them; for a CPU the host's memory
  bool has_bf16 = true;        // for GPUs
  std::string cpu_level = {};  // for CPUs, by kCpuLevels; empty = unknown
};
const std::vector<Machine>& known_machines();
const Machine* known_machine(const std::string& name);  // null: none

}  // namespace convoy::sizing
