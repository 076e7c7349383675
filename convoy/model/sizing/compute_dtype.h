// SPDX-License-Identifier: Apache-2.0
//
// The type that a command computes in where the user names none: one rule for training,
// evaluation, scoring, generation, serving and processing, and for the configuration that init
// writes. Pure functions of their arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "convoy/core/settings/train_settings.h"
#include "convoy/model/architecture/decoder_spec.h"
#include "convoy/model/sizing/known_models.h"

namespace convoy::sizing {

struct DtypeQuestion {
  Hardware hardware = Hardware::Cpu;
  bool gpu_has_bf16 = true;
  std::string cpu_level = {};  // one of kCpuLevels; empty = unknown
  // The memory of the work in fp32, and of the machine; 0 = unknown. Not what is free at the
  // moment: the type must not change with the load of the machine.
  int64_t fp32_bytes = 0;
  int64_t machine_bytes = 0;
  bool saves_memory = false;  // the user asked for the least memory
};

struct DtypeChoice {
  std::string dtype = "bf16";  // fp32 or bf16
  std::string reason = {};     // "this CPU (avx2) ..."; empty = the user named it
  // "bf16: this CPU (avx2) ...; --dtype fp32 for the other". `flag`: "--dtype " in this example.
  std::string text(const std::string& flag) const;
  bool operator==(const DtypeChoice&) const = default;
};

DtypeChoice choose_dtype(const DtypeQuestion& question);

// The question for a machine, without the memory that the work takes.
DtypeQuestion dtype_question(const Machine& machine);

// The type of a training on `machine`: what the settings name, else by the rule. `model` is empty
// where its sizes are unknown, and for task classify.
DtypeChoice choose_training_dtype(const settings::TrainSettings& settings, const Machine& machine,
                                  const std::optional<architecture::DecoderSpec>& model);

}  // namespace convoy::sizing
