// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/generate/generate_text.h"

#include <algorithm>
#include <functional>
#include <iostream>
#include <span>

#include "convoy/apps/recipes/conversation/conversation.h"
#include "convoy/apps/recipes/generate/answer_prompts.h"
#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/apps/recipes/rank_share.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/config/describe.h"
#include "convoy/core/config/flags.h"
#include "convoy/core/io/answer_journal.h"
#include "convoy/core/io/model_fingerprint.h"
#include "convoy/core/io/row_output.h"
#include "convoy/data/datasets/encoding/prompt_reader.h"
#include "convoy/model/architecture/families/family.h"

namespace convoy::recipes {
namespace {

using Json = nlohmann::ordered_json;

struct Prompts {
  std::vector<AskedPrompt> asked;
  std::vector<int64_t> source_indices;  // row index in the file, by prompt
};

Json answer_row(const Answer& answer, const Prompts& prompts) {
  const generate::Completion& completion = answer.completion;
  Json row = {{"index", prompts.source_indices[static_cast<size_t>(answer.prompt)]},
              {"sample", answer.sample},
              {"prompt_tokens", completion.prompt_tokens},
              {"completion", completion.text},
              {"token_ids", completion.token_ids},
              {"finish_reason", generate::finish_reason_name(completion.finish_reason)}};
  if (!completion.logprobs.empty()) row["logprobs"] = completion.logprobs;
  return row;
}

// A key over everything that an answer depends on.
std::string answers_key(const GenerateRun& run, const AnswerOptions& options,
                        const LoadedModel& loaded, const Prompts& prompts) {
  Sha256 hash;
  hash.update(io::model_fingerprint(loaded.folder));
  hash.update(run.model.adapter.empty() ? "" : io::adapter_fingerprint(run.model.adapter));
  hash.update(loaded.model->head().weight().dtype().name());
  settings::SamplingFlags settled = options.sampling;
  hash.update(config::dump_json(config::list_fields(settled)).dump());
  hash.update(run.engine.weights + " " + run.engine.kv_dtype);
  if (run.engine.weights == "model") hash.update(coding_text(*loaded.model));
  if (run.engine.activations != "model") hash.update(" activations " + run.engine.activations);
  if (options.form) hash.update(" schema " + options.form->text);
  for (size_t prompt = 0; prompt < prompts.asked.size(); ++prompt) {
    const std::vector<int32_t>& ids = prompts.asked[prompt].ids;
    hash.update(fmt::format("{} {}{}:", prompts.source_indices[prompt], ids.size(),
                            prompts.asked[prompt].is_chat ? " chat" : ""));
    hash.update(std::as_bytes(std::span(ids)));
  }
  return hash.hex();
}

// Prints the answers to stdout, on the only rank. Prints each answer as soon as all answers before
// it are printed.
void print_answers(RankShare& share, const LoadedModel& loaded, const Prompts& prompts,
                   const AnswerOptions& options, const Log& log,
                   const std::function<std::string(const Answer&)>& line) {
  io::LinesInOrder in_order([](const std::string& text) { std::cout << text << std::endl; });
  answer_prompts(share, loaded, prompts.asked, options, log, [&](const Answer& answer) {
    in_order.add(answer.prompt * options.sampling.n + answer.sample, line(answer));
  });
  if (!std::cout.good())
    throw IoError("stdout cannot be written", {.hint = "is the disk full or the pipe closed?"});
}

void write_answers(RankShare& share, const LoadedModel& loaded, const Prompts& prompts,
                   const GenerateRun& run, AnswerOptions options, const Log& log) {
  const std::string& path = run.flags.output;
  std::optional<io::RowOutput> output;  // on the leading rank
  if (share.leads()) output.emplace(path);
  std::optional<io::AnswerJournal> journal;
  if (keeps_answers(run))
    journal.emplace(path, answers_key(run, options, loaded, prompts), share.rank(), log);
  std::vector<PlacedLine> lines;
  const auto keep = [&](int64_t prompt, int64_t sample, const std::string& line) {
    lines.emplace_back(prompt * run.sampling.n + sample, line);
  };
  if (journal) {
    for (const auto& [place, line] : journal->kept())
      if (share.owns(place.first)) keep(place.first, place.second, line);
    options.is_done = [&journal](int64_t prompt, int64_t sample) {
      return journal->kept().contains({prompt, sample});
    };
    options.stop_wanted = run.stop_wanted;
  }
  try {
    answer_prompts(share, loaded, prompts.asked, options, log, [&](const Answer& answer) {
      const std::string line = io::line_of(answer_row(answer, prompts));
      if (journal) journal->add({answer.prompt, answer.sample}, line);
      keep(answer.prompt, answer.sample, line);
    });
  } catch (const StopRequest& stop) {
    throw StopRequest(fmt::format("{} and kept in {}", stop.what(), journal->folder().string()),
                      {.hint = "the same command resumes from them"});
  }
  std::sort(lines.begin(), lines.end());
  gather_in_order(share.group(), lines, 0,
                  static_cast<int64_t>(prompts.asked.size()) * run.sampling.n,
                  [&output](const std::string& line) { output->add(line); });
  if (!output) return;
  output->finish();
  if (journal) journal->remove();
}

settings::SamplingSources sampling_sources(const LoadedModel& loaded) {
  return {.model = model_sampling(loaded.folder)};
}

// The reason why the base cannot answer beside the adapter; empty when it can.
std::string no_base_because(const GenerateRun& run, const LoadedModel& loaded) {
  if (!loaded.lora) return "there is no --adapter";
  if (!loaded.lora->config().modules_to_save.empty() || loaded.lora->brings_embeddings())
    return "the adapter brings whole modules (modules_to_save, embeddings)";
  return run.engine.cuda_graphs == "on" ? "--cuda-graphs on records the adapter's steps" : "";
}

Prompts encode_prompts(const OpenedModel& model, const settings::GenerateFlags& flags,
                       const Log& log) {
  const data::SampleEncoder encoder(model.tokenizer, model.template_or_null(), data::Supervision());
  bool is_chat = false;  // true if the last encoded prompt is a chat
  const data::PromptReader reader(
      flags, model.chat_template.has_value(),
      [&](const data::Sample& sample) {
        is_chat = data::is_chat(sample);
        return encoder.encode_prompt(sample);
      },
      log);
  Prompts prompts;
  reader.read([&](data::EncodedRow row, int64_t source_index) {
    prompts.asked.push_back({std::move(row.ids), is_chat});
    prompts.source_indices.push_back(source_index);
  });
  return prompts;
}

void converse_with(OpenedModel opened, const GenerateRun& run, const Log& log) {
  settings::EngineFlags for_one = run.engine;
  if (for_one.batch_size.is_auto()) for_one.batch_size = 1;
  const int64_t positions = families::read_decoder_spec(opened.folder).max_positions;
  say_generation_memory(opened, for_one, rows_together(for_one, opened.request.device, positions),
                        1, log);
  const LoadedModel loaded = load_weights(std::move(opened), log);
  const data::SampleEncoder encoder(loaded.tokenizer, loaded.template_or_null(),
                                    data::Supervision());
  const data::PromptReader reader(
      run.flags, loaded.chat_template.has_value(),
      [&](const data::Sample& sample) { return encoder.encode_prompt(sample); }, log);
  const std::string no_base = no_base_because(run, loaded);
  std::optional<adapters::ServedAdapters> beside;
  if (no_base.empty()) beside.emplace(*loaded.model, *loaded.lora);
  generate::EngineConfig config = engine_config(for_one, loaded, {}, log);
  config.adapters = beside ? &*beside : nullptr;
  generate::Engine engine(*loaded.model, loaded.tokenizer, config);
  converse(engine, encoder,
           {.model = run.model.model,
            .system_prompt = run.flags.system_prompt,
            .template_kwargs = reader.variables(),
            .sampling = run.sampling,
            .sources = sampling_sources(loaded),
            .turn_end_ids = loaded.turn_end_ids,
            .adapter = beside ? 1 : 0,
            .no_base_because = no_base},
           log);
}

bool prints_text_alone(const GenerateRun& run) {
  return run.flags.prompts.empty() && !run.json && run.flags.output.empty();
}

constexpr int64_t kMostSchemaBytes = int64_t{16} << 20;

std::optional<text::GrammarSource> form_of(const settings::GenerateFlags& flags) {
  if (flags.schema.empty()) return {};
  return text::GrammarSource{.kind = text::GrammarKind::JsonSchema,
                             .text = read_file(flags.schema, kMostSchemaBytes)};
}

void check_flags(const GenerateRun& run) {
  const settings::GenerateFlags& flags = run.flags;
  if (!flags.prompt.names.empty())
    config::refuse_without_effect(flags, {"bad_rows"}, "with --prompt");
  if (prints_text_alone(run))
    config::refuse_without_effect(run.sampling, {"logprobs"},
                                  "where the text alone is printed: add --json or --output");
  if (flags.interactive) {
    config::refuse_without_effect(flags, {"chat", "output", "bad_rows", "schema"},
                                  "with --interactive");
    config::refuse_without_effect(run.sampling, {"n"}, "with --interactive");
  }
}

}  // namespace

bool keeps_answers(const GenerateRun& run) {
  return io::AnswerJournal::is_kept_beside(run.flags.output);
}

void generate_text(const GenerateRun& run, const Log& given_log) {
  const settings::GenerateFlags& flags = run.flags;
  const std::vector<std::string>& typed = flags.prompt.names;
  const int sources = !flags.prompts.empty() + !typed.empty() + flags.interactive;
  const bool is_empty_prompt = std::find(typed.begin(), typed.end(), "") != typed.end();
  if (sources != 1 || is_empty_prompt)
    throw ConfigError(
        "wanted one of --prompts FILE, --prompt TEXT (which is not empty), --interactive",
        {.hint = "such as --prompt \"What is 2 + 3?\""});
  check_flags(run);
  const Log log = log_of_rank(run.ranks.ranks_folder, given_log);
  RankShare share(run.ranks);
  OpenedModel opened = open_model(
      model_request(run.model, run.engine, flags.template_path, share.rank_device()), log);
  if (flags.chat == "on" && !opened.chat_template)
    throw ConfigError(
        fmt::format("--chat on, but {} has no chat template", opened.folder.path().string()),
        {.key = "--chat", .hint = "leave it out, or name one with --template-path"});
  const at::NoGradGuard no_grad;
  const settings::SamplingSources below{.model = model_sampling(opened.folder)};
  log.info(settings::sampling_line(run.sampling, below));
  if (flags.interactive) return converse_with(std::move(opened), run, log);
  const Prompts prompts = encode_prompts(opened, flags, log);
  AnswerOptions options{.sampling = settings::settle_sampling(run.sampling, below),
                        .engine = run.engine,
                        .form = form_of(flags)};
  sizing::GenerationRows rows = rows_together(run.engine, opened.request.device,
                                              longest_row(prompts.asked, options.sampling));
  rows.rows = std::clamp<int64_t>(std::ssize(prompts.asked) * options.sampling.n, 1, rows.rows);
  say_generation_memory(opened, run.engine, rows, share.size(), log);
  const LoadedModel loaded = load_weights(std::move(opened), log);
  share.follow_free_cores(log);
  const bool text_alone = prints_text_alone(run);
  options.progress = {.label = "generate", .unit = "answer"};
  if (text_alone) options.progress.style = telemetry::ProgressStyle::None;
  if (text_alone || (flags.output.empty() && share.size() == 1))
    print_answers(share, loaded, prompts, options, log, [&](const Answer& answer) {
      return text_alone ? answer.completion.text : io::line_of(answer_row(answer, prompts));
    });
  else
    write_answers(share, loaded, prompts, run, options, log);
  share.finish();
}

}  // namespace convoy::recipes
