// SPDX-License-Identifier: Apache-2.0
//
// `convoy models quantize`, which runs in convoy-worker.
#include "convoy/apps/front/command.h"
#include "convoy/apps/front/worker/worker_program.h"
#include "convoy/core/settings/quantization_settings.h"
#include "convoy/launch/supervisor/launch_flags.h"

namespace convoy::apps {
namespace {

int run_quantize(Context& context, const std::vector<std::string>& arguments) {
  launch::ThreadFlags computing;
  settings::QuantizeFlags flags;
  const config::TakenFlags taken = config::take_flags(
      {config::list_fields(computing)},
      {config::list_fields(flags), config::list_fields(context.common)}, arguments);
  become_worker(context, "quantize", taken.left, computing.threads);
}

}  // namespace

Command models_quantize_action() {
  return {
      .name = "quantize",
      .summary = "Write a model in 4 or 8 bits, or back in full",
      .usage =
          "convoy models quantize --model D --output D [--quantization nf4|fp4|int8] "
          "[--double-quant]\n"
          "convoy models quantize --tensors F.safetensors --output G.safetensors [flags]\n"
          "convoy models quantize (--model D | --tensors F) --output D --dequantize [--dtype fp32]",
      .examples =
          "convoy models quantize --model models/tally-3m --output tally-nf4 --double-quant\n"
          "convoy models quantize --model tally-nf4 --output tally-fp32 --dequantize --dtype fp32\n"
          "convoy models quantize --tensors a.safetensors --output b.safetensors --quantization "
          "fp4",
      .flags = {flags_of<settings::QuantizeFlags>(), flags_of<launch::ThreadFlags>()},
      .run = run_quantize};
}

}  // namespace convoy::apps
