// SPDX-License-Identifier: Apache-2.0
#include "convoy/recipes/generate_text.h"

#include <unistd.h>

#include <iostream>

#include "convoy/base/error.h"
#include "convoy/data/encode_sample.h"
#include "convoy/data/row_source.h"
#include "convoy/data/schema.h"
#include "convoy/device/threads.h"
#include "convoy/models/registry.h"
#include "convoy/recipes/row_output.h"
#include "convoy/telemetry/progress.h"

namespace convoy::recipes {
namespace {

using Json = nlohmann::ordered_json;

Json completion_row(const generate::Completion& completion) {
  return {{"index", completion.index},
          {"sample", completion.sample},
          {"prompt_tokens", completion.prompt_tokens},
          {"completion", completion.text},
          {"token_ids", completion.token_ids},
          {"finish_reason", generate::finish_reason_name(completion.finish_reason)}};
}

std::vector<std::vector<int32_t>> read_prompts(const settings::GenerateFlags& flags,
                                               const data::SampleEncoder& encoder) {
  std::vector<std::vector<int32_t>> prompts;
  const auto rows = data::open_rows(flags.prompts);
  const data::SchemaConfig config{.system_prompt = flags.system_prompt};
  while (const std::optional<data::Row> row = rows->next())
    prompts.push_back(encoder.encode_prompt(data::convert_prompt(*row, config)).ids);
  if (prompts.empty()) throw DataError("the file holds no prompts", {.file = flags.prompts});
  return prompts;
}

void generate_file(generate::Generator& generator, const std::vector<std::vector<int32_t>>& prompts,
                   const settings::GenerateFlags& flags, int64_t samples_per_prompt,
                   const Log& log) {
  RowOutput output(flags.output);
  telemetry::ProgressOptions options;
  options.label = "generate";
  options.unit = "answer";
  options.total = static_cast<int64_t>(prompts.size()) * samples_per_prompt;
  if (log.level() == LogLevel::Quiet) options.style = telemetry::ProgressStyle::None;
  telemetry::Progress progress(options);
  const auto start = std::chrono::steady_clock::now();
  int64_t done = 0;
  int64_t tokens = 0;
  const std::vector<generate::Completion> completions =
      generator.run(prompts, [&](const generate::Completion& completion) {
        tokens += static_cast<int64_t>(completion.token_ids.size());
        const double seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        progress.update(
            {.done = ++done, .per_second = static_cast<double>(tokens) / std::max(seconds, 1e-9)});
      });
  progress.finish();
  for (const generate::Completion& completion : completions) output.add(completion_row(completion));
  output.finish();
}

// One conversation; an empty line or end of input ends it.
void converse(generate::Generator& generator, const data::SampleEncoder& encoder,
              const std::string& system_prompt) {
  data::Sample sample{
      .kind = data::Sample::Kind::Chat, .messages = Json::array(), .file = "the conversation"};
  if (!system_prompt.empty())
    sample.messages.push_back({{"role", "system"}, {"content", system_prompt}});
  const bool on_terminal = ::isatty(STDIN_FILENO) != 0;
  for (std::string line;;) {
    if (on_terminal) std::cerr << "> " << std::flush;
    if (!std::getline(std::cin, line) || line.empty()) return;
    sample.messages.push_back({{"role", "user"}, {"content", line}});
    const auto answers = generator.run({encoder.encode_prompt(sample).ids});
    std::cout << answers.front().text << std::endl;
    sample.messages.push_back({{"role", "assistant"}, {"content", answers.front().text}});
  }
}

}  // namespace

generate::GenerationConfig generation_config(const settings::SamplingFlags& sampling,
                                             const LoadedModel& model) {
  return {.sampling = {.temperature = sampling.greedy ? 0.0 : sampling.temperature,
                       .top_k = sampling.top_k,
                       .top_p = sampling.top_p,
                       .seed = static_cast<uint64_t>(sampling.seed)},
          .max_new_tokens = sampling.max_new_tokens,
          .samples_per_prompt = sampling.n,
          .batch_size = sampling.batch_size,
          .end_ids = models::end_token_ids(model.folder),
          .stop = sampling.stop.names};
}

void generate_text(const settings::ModelFlags& model_flags, const settings::GenerateFlags& flags,
                   const settings::SamplingFlags& sampling, bool json, const Log& log) {
  const int sources = !flags.prompts.empty() + !flags.prompt.empty() + flags.interactive;
  CONVOY_CHECK(sources == 1, ConfigError,
               "wanted one of --prompts FILE, --prompt TEXT, --interactive");
  device::share_cpu_threads(1);
  const LoadedModel loaded = load_model(model_request(model_flags, flags.template_path), log);
  const at::NoGradGuard no_grad;
  const data::SampleEncoder encoder(loaded.tokenizer, loaded.template_or_null(),
                                    data::Supervise::Auto);
  generate::Generator generator(*loaded.model, loaded.tokenizer,
                                generation_config(sampling, loaded));
  if (flags.interactive) return converse(generator, encoder, flags.system_prompt);
  if (!flags.prompts.empty())
    return generate_file(generator, read_prompts(flags, encoder), flags, sampling.n, log);
  const data::Sample sample{
      .kind = data::Sample::Kind::Text, .text = flags.prompt, .file = "--prompt"};
  const std::vector<std::vector<int32_t>> prompts = {encoder.encode_prompt(sample).ids};
  if (json || !flags.output.empty())
    return generate_file(generator, prompts, flags, sampling.n, log);
  for (const generate::Completion& completion : generator.run(prompts))
    std::cout << completion.text << std::endl;
}

}  // namespace convoy::recipes
