// SPDX-License-Identifier: Apache-2.0
//
// `convoy models export` and `convoy models convert`, which run in convoy-worker.
#include "convoy/apps/front/command.h"
#include "convoy/apps/front/worker/worker_program.h"
#include "convoy/core/settings/model_export_flags.h"
#include "convoy/launch/supervisor/launch_flags.h"

namespace convoy::apps {
namespace {

// Reports a wrong flag before the worker starts.
template <class Flags>
int run_model_file(Context& context, const char* command, const Words& arguments) {
  launch::ThreadFlags computing;
  Flags flags;
  const config::TakenFlags taken = config::take_flags(
      {config::list_fields(computing)},
      {config::list_fields(flags), config::list_fields(context.common)}, arguments);
  become_worker(context, command, taken.left, computing.threads);
}

int run_export(Context& context, const Words& arguments) {
  return run_model_file<settings::ModelExportFlags>(context, "export", arguments);
}

int run_convert(Context& context, const Words& arguments) {
  return run_model_file<settings::ModelConvertFlags>(context, "convert", arguments);
}

}  // namespace

Command models_export_action() {
  return {.name = "export",
          .summary = "Write a model for llama.cpp, Ollama and LM Studio",
          .usage = "convoy models export MODEL [--adapter A] [--format gguf|ollama] [--type q8_0]",
          .examples =
              "convoy models export examples/tally-3m --type q8_0\n"
              "convoy models export models/Qwen2.5-0.5B-Instruct --adapter runs/r/adapter --type "
              "q4_k_m\n"
              "convoy models export runs/r/model --format ollama --output my-model\n"
              "convoy models export models/base --adapter runs/r/adapter --adapter-only",
          .flags = {flags_of<settings::ModelExportFlags>(), flags_of<launch::ThreadFlags>()},
          .run = run_export};
}

Command models_convert_action() {
  return {.name = "convert",
          .summary = "Write a GGUF file as a folder of safetensors",
          .usage =
              "convoy models convert FILE.gguf FOLDER [--dtype auto|fp32|bf16|fp16] [--base MODEL]",
          .examples =
              "convoy models convert model-q8_0.gguf models/model --dtype bf16\n"
              "convoy models convert adapter.gguf adapters/a --base models/model",
          .flags = {flags_of<settings::ModelConvertFlags>(), flags_of<launch::ThreadFlags>()},
          .run = run_convert};
}

}  // namespace convoy::apps
