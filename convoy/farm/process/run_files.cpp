// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/run_files.h"

#include <utility>

#include "convoy/core/base/files.h"
#include "convoy/core/settings/resolve_process.h"

namespace convoy::process {
namespace {

std::filesystem::path prompt_file(const std::filesystem::path& run_folder, const char* stage) {
  return run_folder / "prompts" / (std::string(stage) + ".txt");
}

std::filesystem::path schema_file(const std::filesystem::path& run_folder,
                                  const std::string& stage) {
  return run_folder / "schemas" / (stage + ".json");
}

}  // namespace

void write_prompts(const std::filesystem::path& run_folder, const PipelinePlan& plan) {
  // A template lacks the last newline of its file. The newline is written, and removed again when
  // the file is read.
  write_file_atomic(prompt_file(run_folder, "generate"), plan.generate.text() + "\n");
  write_file_atomic(prompt_file(run_folder, "evaluate"), plan.evaluate.text() + "\n");
  write_file_atomic(prompt_file(run_folder, "improve"), plan.improve.text() + "\n");
  for (const auto& [stage, schema] : plan.schemas)
    write_file_atomic(schema_file(run_folder, stage), schema + "\n");
}

PipelinePlan read_pipeline_plan(const std::filesystem::path& run_folder) {
  settings::ProcessSettings settings;
  settings::resolve_process(settings, {.file = run_folder / "config.yaml"});
  PromptTexts texts;
  for (const char* stage : {"generate", "evaluate", "improve"})
    texts[stage] = read_file(prompt_file(run_folder, stage));
  StageSchemas schemas;
  const std::pair<const char*, const std::string*> set[] = {{"generate", &settings.generate.schema},
                                                            {"evaluate", &settings.evaluate.schema},
                                                            {"improve", &settings.improve.schema}};
  for (const auto& [stage, schema] : set)
    if (!schema->empty()) schemas[stage] = read_file(schema_file(run_folder, stage));
  return {settings, texts, std::move(schemas)};
}

}  // namespace convoy::process
