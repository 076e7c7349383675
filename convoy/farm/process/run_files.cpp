// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/run_files.h"

#include "convoy/core/base/files.h"
#include "convoy/core/settings/resolve_process.h"

namespace convoy::process {
namespace {

std::filesystem::path prompt_file(const std::filesystem::path& run_folder, const char* stage) {
  return run_folder / "prompts" / (std::string(stage) + ".txt");
}

}  // namespace

void write_prompts(const std::filesystem::path& run_folder, const PipelinePlan& plan) {
  // A template lacks the last newline of its file. The newline is written, and removed again when
  // the file is read.
  write_file_atomic(prompt_file(run_folder, "generate"), plan.generate.text() + "\n");
  write_file_atomic(prompt_file(run_folder, "evaluate"), plan.evaluate.text() + "\n");
  write_file_atomic(prompt_file(run_folder, "improve"), plan.improve.text() + "\n");
}

PipelinePlan read_pipeline_plan(const std::filesystem::path& run_folder) {
  settings::ProcessSettings settings;
  settings::resolve_process(settings, {.file = run_folder / "config.yaml"});
  PromptTexts texts;
  for (const char* stage : {"generate", "evaluate", "improve"})
    texts[stage] = read_file(prompt_file(run_folder, stage));
  return {settings, texts};
}

}  // namespace convoy::process
