// SPDX-License-Identifier: Apache-2.0
//
// `convoy quantize`, which runs in convoy-worker.
#include "convoy/apps/front/command.h"
#include "convoy/apps/front/worker_program.h"
#include "convoy/settings/quantization_settings.h"

namespace convoy::apps {
namespace {

int run_quantize(Context& context, const std::vector<std::string>& arguments) {
  settings::QuantizeFlags flags;
  const std::vector<std::string> left = config::take_flags(
      {}, {config::list_fields(flags), config::list_fields(context.common)}, arguments);
  become_worker(context, "quantize", left);
}

}  // namespace

Command quantize_command() {
  return {
      .name = "quantize",
      .summary = "writes a model in bitsandbytes' 4 or 8 bits, or back",
      .usage =
          "convoy quantize --model D --output D [--quantization nf4|fp4|int8] [--double-quant]\n"
          "convoy quantize --tensors F.safetensors --output G.safetensors [flags]\n"
          "convoy quantize (--model D | --tensors F) --output D --dequantize [--dtype fp32]",
      .examples =
          "convoy quantize --model models/tally-3m --output tally-nf4 --double-quant\n"
          "convoy quantize --model tally-nf4 --output tally-fp32 --dequantize --dtype fp32\n"
          "convoy quantize --tensors a.safetensors --output b.safetensors --quantization fp4",
      .flag_table = config::flag_table_of<settings::QuantizeFlags>,
      .run = run_quantize};
}

}  // namespace convoy::apps
