// SPDX-License-Identifier: Apache-2.0
#include "convoy/recipes/generate_text.h"

#include <unistd.h>

#include <iostream>

#include "convoy/base/error.h"
#include "convoy/config/flags.h"
#include "convoy/data/encoded_rows.h"
#include "convoy/models/registry.h"
#include "convoy/recipes/row_output.h"
#include "convoy/settings/template_kwargs.h"

namespace convoy::recipes {
namespace {

using Json = nlohmann::ordered_json;

struct Prompts {
  std::vector<std::vector<int32_t>> ids;
  std::vector<int64_t> source_indices;  // rows of the file
};

Json completion_row(const generate::Completion& completion, int64_t index) {
  return {{"index", index},
          {"sample", completion.sample},
          {"prompt_tokens", completion.prompt_tokens},
          {"completion", completion.text},
          {"token_ids", completion.token_ids},
          {"finish_reason", generate::finish_reason_name(completion.finish_reason)}};
}

Prompts read_prompts(const settings::GenerateFlags& flags, const Json& template_kwargs,
                     const data::SampleEncoder& encoder, const Log& log) {
  data::EncodedRows encoded(
      flags.prompts, {.system_prompt = flags.system_prompt, .template_kwargs = template_kwargs},
      data::bad_rows_named(flags.bad_rows), data::RowUse::Continue,
      [&](const data::Sample& sample) { return encoder.encode_prompt(sample); });
  Prompts prompts;
  while (std::optional<data::EncodedSample> next = encoded.next()) {
    prompts.ids.push_back(std::move(next->row.ids));
    prompts.source_indices.push_back(next->row.source_index);
  }
  encoded.finish(log);
  return prompts;
}

Prompts one_prompt(const std::string& text, const data::SampleEncoder& encoder, const Log& log) {
  const data::Sample sample{.kind = data::Sample::Kind::Text, .text = text, .file = "--prompt"};
  const data::EncodedRow row = encoder.encode_prompt(sample);
  if (row.own_bos) log.info(data::own_bos_notice(1));
  return {.ids = {row.ids}, .source_indices = {0}};
}

void write_answers(RankShare& share, const LoadedModel& loaded, const Prompts& prompts,
                   const settings::GenerateFlags& flags, const settings::SamplingFlags& sampling,
                   const Log& log) {
  std::optional<RowOutput> output;  // of the leading rank
  if (share.leads()) output.emplace(flags.output);
  std::vector<PlacedLine> lines;
  for (const generate::Completion& completion :
       answer(share, loaded, sampling, prompts.ids, {.label = "generate", .unit = "answer"}, log))
    lines.emplace_back(
        completion.index,
        line_of(completion_row(completion,
                               prompts.source_indices[static_cast<size_t>(completion.index)])));
  share.gather_in_order(lines, 0, static_cast<int64_t>(prompts.ids.size()),
                        [&output](const std::string& line) { output->add(line); });
  if (output) output->finish();
}

// One conversation; an empty line or end of input ends it.
void converse(generate::Generator& generator, const data::SampleEncoder& encoder,
              const std::string& system_prompt, const Json& template_kwargs) {
  data::Sample sample{.kind = data::Sample::Kind::Chat,
                      .messages = Json::array(),
                      .variables = template_kwargs,
                      .file = "the conversation"};
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

void check_flags(const settings::GenerateFlags& flags, const settings::SamplingFlags& sampling) {
  if (!flags.prompt.empty())
    config::refuse_without_effect(flags,
                                  {"system_prompt", "template_path", "template_kwargs", "bad_rows"},
                                  "with --prompt, which is plain text: no chat template is used");
  if (flags.interactive) {
    config::refuse_without_effect(flags, {"output", "bad_rows"}, "with --interactive");
    config::refuse_without_effect(sampling, {"n"}, "with --interactive");
  }
}

}  // namespace

generate::GenerationConfig generation_config(const settings::SamplingFlags& sampling,
                                             const LoadedModel& model) {
  if (sampling.greedy && sampling.temperature.value.value_or(0) > 0)
    throw ConfigError("--greedy and a --temperature above 0 exclude each other",
                      {.key = "--temperature", .hint = "leave one of them out"});
  constexpr double kUsualTemperature = 0.2;
  return {.sampling = {.temperature = sampling.greedy
                                          ? 0.0
                                          : sampling.temperature.value.value_or(kUsualTemperature),
                       .top_k = sampling.top_k,
                       .top_p = sampling.top_p,
                       .seed = static_cast<uint64_t>(sampling.seed)},
          .max_new_tokens = sampling.max_new_tokens,
          .samples_per_prompt = sampling.n,
          .batch_size = sampling.batch_size,
          .end_ids = models::end_token_ids(model.folder),
          .stop = sampling.stop.names};
}

std::vector<generate::Completion> answer(RankShare& share, const LoadedModel& loaded,
                                         const settings::SamplingFlags& sampling,
                                         const std::vector<std::vector<int32_t>>& prompts,
                                         telemetry::ProgressOptions options, const Log& log) {
  std::vector<std::vector<int32_t>> own_prompts;
  for (size_t number = static_cast<size_t>(share.rank()); number < prompts.size();
       number += static_cast<size_t>(share.size()))
    own_prompts.push_back(prompts[number]);
  generate::GenerationConfig config = generation_config(sampling, loaded);
  config.first_index = share.rank();
  config.index_step = share.size();
  generate::Generator generator(*loaded.model, loaded.tokenizer, std::move(config));
  options.total = static_cast<int64_t>(prompts.size()) * sampling.n;
  if (log.level() == LogLevel::Quiet) options.style = telemetry::ProgressStyle::None;
  telemetry::Progress progress(options);
  const auto start = std::chrono::steady_clock::now();
  int64_t own = 0;
  int64_t tokens = 0;
  const auto show = [&](int64_t all) {
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    // The others' tokens are not counted, but their answers are as long.
    const double tokens_of_all = static_cast<double>(tokens) * static_cast<double>(all) /
                                 static_cast<double>(std::max<int64_t>(own, 1));
    progress.update({.done = all, .per_second = tokens_of_all / std::max(seconds, 1e-9)});
  };
  std::vector<generate::Completion> completions =
      generator.run(own_prompts, [&](const generate::Completion& completion) {
        tokens += static_cast<int64_t>(completion.token_ids.size());
        const int64_t all = share.report_done(++own);
        if (share.leads()) show(all);
      });
  share.wait_for_all(options.total, show);
  progress.finish();
  return completions;
}

void generate_text(const settings::ModelFlags& model_flags, const settings::GenerateFlags& flags,
                   const settings::SamplingFlags& sampling, const settings::RankFlags& ranks,
                   bool json, const Log& given_log) {
  const int sources = !flags.prompts.empty() + !flags.prompt.empty() + flags.interactive;
  CONVOY_CHECK(sources == 1, ConfigError,
               "wanted one of --prompts FILE, --prompt TEXT, --interactive");
  check_flags(flags, sampling);
  const Json template_kwargs =
      settings::template_kwargs(flags.template_kwargs, "--template-kwargs");
  const Log log = log_of_rank(ranks.ranks_folder, given_log);
  RankShare share(ranks);
  const LoadedModel loaded =
      load_model(model_request(model_flags, flags.template_path, share.placement()), log);
  const at::NoGradGuard no_grad;
  const data::SampleEncoder encoder(loaded.tokenizer, loaded.template_or_null(),
                                    data::Supervise::Auto);
  if (flags.interactive) {
    generate::Generator generator(*loaded.model, loaded.tokenizer,
                                  generation_config(sampling, loaded));
    return converse(generator, encoder, flags.system_prompt, template_kwargs);
  }
  const Prompts prompts = flags.prompts.empty()
                              ? one_prompt(flags.prompt, encoder, log)
                              : read_prompts(flags, template_kwargs, encoder, log);
  if (!flags.prompts.empty() || json || !flags.output.empty()) {
    write_answers(share, loaded, prompts, flags, sampling, log);
  } else {
    for (const generate::Completion& completion : answer(
             share, loaded, sampling, prompts.ids, {.style = telemetry::ProgressStyle::None}, log))
      std::cout << completion.text << std::endl;
  }
  share.finish();
}

}  // namespace convoy::recipes
