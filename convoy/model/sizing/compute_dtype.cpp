// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/sizing/compute_dtype.h"

#include <fmt/format.h>

#include <algorithm>

#include "convoy/core/base/bytes_text.h"
#include "convoy/core/base/cpu_level_limit.h"
#include "convoy/model/sizing/training_request.h"

namespace convoy::sizing {
namespace {

// From this level on bf16 is as fast as fp32 or faster, and takes half the memory for weights. On
// two cores of Zen 3 (avx2), tokens/s in bf16 beside fp32, rows of 512 and 256 tokens:
//   LoRA: *small* 572 and 569, SmolLM2-135M 158 and 164; full: 444 and 457, 122 and 124
//   generation with SmolLM2-135M, greedy: 1 row 40 and 30, 8 rows 82 and 74, 32 rows 89 and 104
// With instructions for bf16 (avx512_bf16, amx) it is 1.5 to 4 times as fast: docs/benchmarks.md.
// Loops for any x86-64 (baseline, on the same cores) are slower with it: *small*, LoRA 192 and 205,
// generation 76 and 87, 124 and 149, 139 and 162.
constexpr std::string_view kFirstLevelWithBf16 = "avx2";
constexpr std::string_view kFirstLevelWithUnits = "avx512_bf16";

bool reaches(const std::string& level, std::string_view least) {
  const auto place = [](std::string_view name) {
    return std::find(kCpuLevels.begin(), kCpuLevels.end(), name);
  };
  return place(level) >= place(least);
}

DtypeChoice choice_of_cpu(const DtypeQuestion& question) {
  const std::string& level = question.cpu_level;
  if (level.empty())
    return {"bf16", "on CPUs with AVX2 it is as fast as fp32 and takes half the memory"};
  if (reaches(level, kFirstLevelWithUnits))
    return {"bf16", fmt::format("this CPU ({}) multiplies it faster than fp32", level)};
  if (reaches(level, kFirstLevelWithBf16))
    return {"bf16",
            fmt::format("on this CPU ({}) it is as fast as fp32 and takes half the memory", level)};
  if (question.saves_memory) return {"bf16", "it takes half of fp32's memory"};
  if (question.machine_bytes > 0 && question.fp32_bytes > question.machine_bytes)
    return {"bf16", fmt::format("fp32 needs {}, and there are {}", bytes_text(question.fp32_bytes),
                                bytes_text(question.machine_bytes))};
  return {"fp32", fmt::format("on this CPU ({}) bf16 is slower", level)};
}

}  // namespace

std::string DtypeChoice::text(const std::string& flag) const {
  if (reason.empty()) return dtype;
  return fmt::format("{}: {}; {}{} for {}", dtype, reason, flag, dtype == "bf16" ? "fp32" : "bf16",
                     dtype == "bf16" ? "more exact numbers" : "half the memory");
}

DtypeChoice choose_dtype(const DtypeQuestion& question) {
  if (question.hardware == Hardware::Cpu) return choice_of_cpu(question);
  if (question.gpu_has_bf16) return {"bf16", "this GPU multiplies it faster than fp32"};
  return {"fp32", "this GPU has no bf16"};
}

DtypeQuestion dtype_question(const Machine& machine) {
  return {.hardware = machine.hardware,
          .gpu_has_bf16 = machine.has_bf16,
          .cpu_level = machine.cpu_level,
          .machine_bytes = machine.device_bytes};
}

DtypeChoice choose_training_dtype(const settings::TrainSettings& settings, const Machine& machine,
                                  const std::optional<architecture::DecoderSpec>& model) {
  if (const std::string named = settings.wished_dtype(); named != "auto") return {named, ""};
  DtypeQuestion question = dtype_question(machine);
  if (model && machine.hardware == Hardware::Cpu) {
    EstimateRequest request = request_in(settings, machine, "fp32");
    choose_sharing(*model, settings, machine, request);
    settle_recompute(*model, settings, machine.device_bytes, request);
    question.fp32_bytes = estimate_memory(*model, request).total_bytes();
  }
  return choose_dtype(question);
}

}  // namespace convoy::sizing
