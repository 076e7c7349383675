// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/generate/remote_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "convoy/apps/front/data/row_tokens.h"
#include "convoy/apps/front/generate/saved_samples.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/config/describe.h"
#include "convoy/core/io/answer_journal.h"
#include "convoy/core/io/json_text.h"
#include "convoy/core/io/model_folder.h"
#include "convoy/core/io/row_output.h"
#include "convoy/core/settings/sampling_choice.h"
#include "convoy/core/settings/train_settings.h"
#include "convoy/data/datasets/encoding/prompt_reader.h"
#include "convoy/data/datasets/schemas/question.h"
#include "convoy/data/evaluate/sample_files.h"
#include "convoy/farm/process/model_facts.h"
#include "convoy/farm/remote/remote_questions.h"
#include "convoy/machine/processes/signals.h"

namespace convoy::apps {
namespace {

using Json = nlohmann::ordered_json;
using remote::RemoteAnswer;

constexpr const char* kServersDecide = "with --engine: its servers have loaded the model";
constexpr int64_t kRequestsOfAServer = 512;

struct RemotePrompts {
  std::vector<process::Prompt> prompts;
  std::vector<int64_t> source_indices;  // row index in the file, by prompt
};

RemotePrompts read_prompts(const settings::GenerateFlags& flags, const Log& log) {
  process::Prompt last;
  const data::PromptReader reader(
      flags, true,
      [&last](const data::Sample& sample) {
        last = remote::prompt_of(sample);
        return data::EncodedRow();
      },
      log);
  RemotePrompts prompts;
  reader.read([&](const data::EncodedRow&, int64_t source_index) {
    prompts.prompts.push_back(std::move(last));
    prompts.source_indices.push_back(source_index);
  });
  return prompts;
}

settings::SamplingFlags settled_sampling(const settings::AnswerCall& call, const Log& log) {
  const settings::SamplingSources sources{.model = process::sampling_of_folder(call.model.model)};
  log.info(settings::served_sampling_line(call.sampling, sources));
  return settings::settle_sampling(call.sampling, sources);
}

remote::RemoteQuestions questions_of(std::vector<process::Prompt> prompts,
                                     const settings::RemoteSettings& remote,
                                     const settings::AnswerCall& call, const Log& log) {
  return {.prompts = std::move(prompts),
          .sampling = settled_sampling(call, log),
          .requests = call.engine.batch_size.value.value_or(kRequestsOfAServer *
                                                            std::ssize(remote.engine))};
}

// The line has no token ids, because the server does not send them.
std::string answer_line(const RemoteAnswer& answer, const RemotePrompts& prompts) {
  return io::line_of(
      {{"index", prompts.source_indices[static_cast<size_t>(answer.prompt)]},
       {"sample", answer.sample},
       {"prompt_tokens", answer.text.prompt_tokens},
       {"completion", answer.text.text},
       {"finish_reason", process::finish_word(answer.text.finish, answer.text.other_finish)}});
}

// A key over everything that an answer depends on.
std::string journal_key(const std::string& model, const RemotePrompts& prompts,
                        settings::SamplingFlags sampling) {
  Sha256 hash;
  hash.update("served as " + model);
  hash.update(config::dump_json(config::list_fields(sampling)).dump());
  for (size_t prompt = 0; prompt < prompts.prompts.size(); ++prompt) {
    const process::Prompt& one = prompts.prompts[prompt];
    hash.update(
        io::line_of({prompts.source_indices[prompt], one.messages, one.variables, one.text}));
  }
  return hash.hex();
}

void print_remote_answers(const remote::Servers& servers, const RemotePrompts& prompts,
                          const remote::RemoteQuestions& questions, const Log& log,
                          bool text_alone) {
  io::RowOutput output("");
  io::LinesInOrder in_order([&output](const std::string& line) { output.add(line); });
  std::vector<remote::RemoteFailure> failures;
  try {
    failures = remote::answer_remotely(servers, questions, log, [&](const RemoteAnswer& answer) {
      in_order.add(answer.prompt * questions.sampling.n + answer.sample,
                   text_alone ? answer.text.text : answer_line(answer, prompts));
    });
  } catch (...) {
    in_order.finish();
    throw;
  }
  in_order.finish();
  if (!failures.empty()) remote::refuse_failures(failures, prompts.source_indices);
}

using AnswerLines = std::map<io::AnswerJournal::Place, std::string>;

// Says whether the answers are used when some prompts have none.
enum class Incomplete { Written, Unused };

// Asks the servers and calls `use` with the lines of all answers. Until `use` has returned with all
// answers, finished answers are kept beside the output `path`, because they have cost something.
// Throws what remote::refuse_failures() throws.
void with_kept_answers(const remote::Servers& servers, const RemotePrompts& prompts,
                       remote::RemoteQuestions questions, const std::string& path, const Log& log,
                       Incomplete incomplete, const std::function<void(const AnswerLines&)>& use) {
  // Without a journal a signal ends the process at once, as usual: there is nothing to keep.
  std::optional<processes::SignalStream> signals;
  std::optional<io::AnswerJournal> journal;
  AnswerLines lines;
  if (io::AnswerJournal::is_kept_beside(path)) {
    journal.emplace(path, journal_key(servers.model, prompts, questions.sampling), 0, log);
    lines = journal->kept();
    questions.is_done = [&lines](int64_t prompt, int64_t sample) {
      return lines.contains({prompt, sample});
    };
    signals.emplace(processes::default_stop_signals());
    questions.stop_wanted = [&signals] { return signals->asked_to_stop(); };
  }
  const auto kept = [&] {
    return fmt::format("{} kept in {}", counted(std::ssize(lines), "answer"),
                       journal->folder().string());
  };
  std::vector<remote::RemoteFailure> failures;
  try {
    failures = remote::answer_remotely(servers, questions, log, [&](const RemoteAnswer& answer) {
      const io::AnswerJournal::Place place{answer.prompt, answer.sample};
      std::string line = answer_line(answer, prompts);
      if (journal) journal->add(place, line);
      lines[place] = std::move(line);
    });
  } catch (const StopRequest& stop) {
    throw StopRequest(fmt::format("{} and kept in {}", stop.what(), journal->folder().string()),
                      {.hint = "the same command resumes from them"});
  } catch (Error& error) {
    if (journal && !lines.empty() && error.location().hint.empty())
      error.location().hint = kept() + "; the same command asks for the others alone";
    throw;
  }
  const bool is_used = failures.empty() || (incomplete == Incomplete::Written && !lines.empty());
  if (is_used) use(lines);
  if (!failures.empty()) {
    std::string hint;
    if (journal && !lines.empty())
      hint = fmt::format(
          "{}{}; the same command asks for the others alone, for another one remove "
          "the folder",
          kept(), is_used ? " and written to " + path : "");
    remote::refuse_failures(failures, prompts.source_indices, hint);
  }
  if (journal) journal->remove();
}

void write_remote_answers(const remote::Servers& servers, const RemotePrompts& prompts,
                          remote::RemoteQuestions questions, const std::string& path,
                          const Log& log) {
  io::RowOutput output(path);
  with_kept_answers(servers, prompts, std::move(questions), path, log, Incomplete::Written,
                    [&output](const AnswerLines& lines) {
                      for (const auto& [place, line] : lines) output.add(line);
                      output.finish();
                    });
}

// Renders prompts as the model reads them, because metrics need that text. Uses the chat template
// of --model when --model is a folder on this machine. Without a template, a chat remains a JSON
// list of messages.
class ShownPrompts {
 public:
  explicit ShownPrompts(const std::string& model)
      : tokens_(std::filesystem::is_directory(model) ? RowTokens(model, "", data::Supervision())
                                                     : RowTokens()) {}

  std::string text(const data::Sample& prompt) {
    const process::Prompt asked = remote::prompt_of(prompt);
    if (asked.messages.is_null()) return asked.text;
    if (tokens_.chat_template() != nullptr) return tokens_.encoder()->render(prompt, true);
    has_messages_ = true;
    return io::line_of(asked.messages);
  }
  bool has_messages() const { return has_messages_; }

 private:
  RowTokens tokens_;
  bool has_messages_ = false;
};

// Throws ConfigError for flags of `convoy eval` that servers cannot honour.
void check_evaluation(const settings::EvalFlags& flags) {
  if (!flags.generate)
    throw ConfigError("the loss needs the weights, which servers do not give",
                      {.key = "--engine", .hint = "add --generate to measure answers alone"});
  if (flags.data.empty())
    throw ConfigError("wanted --data FILE with --engine",
                      {.key = "--data", .hint = "such as --data rows.jsonl"});
  config::refuse_without_effect(flags, {"split", "samples"}, "with --engine and --data");
}

// The rows of an evaluation.
struct ReferenceRows {
  RemotePrompts prompts;
  std::vector<evaluate::ScoredAnswer> samples;  // by prompt; `pred` is empty
};

ReferenceRows read_reference_rows(const settings::EvalCall& call, const Log& log) {
  const settings::EvalFlags& flags = call.flags;
  settings::TrainSettings settings;
  settings.data.template_kwargs = flags.template_kwargs;
  const std::string bad_rows = flags.bad_rows.empty() ? settings.data.bad_rows : flags.bad_rows;
  data::Question question;
  data::EncodedRows rows(flags.data, data::SchemaConfig::from(settings.data, settings.task),
                         data::bad_rows_named(bad_rows), data::RowUse::Learn,
                         [&question](const data::Sample& sample) {
                           question = data::split_answer(sample);
                           return data::EncodedRow();
                         });
  ShownPrompts shown(call.model.model);
  ReferenceRows read;
  while ((flags.limit == 0 || std::ssize(read.samples) < flags.limit) && rows.next()) {
    read.prompts.source_indices.push_back(std::ssize(read.samples));
    read.prompts.prompts.push_back(remote::prompt_of(question.prompt));
    read.samples.push_back(
        {.input = shown.text(question.prompt), .pred = {}, .refs = {question.reference}});
  }
  rows.finish(log);
  if (shown.has_messages())
    log.warning(
        "the inputs of metrics and samples are lists of messages; with --model DIR they "
        "are texts by its chat template, as without --engine");
  return read;
}

evaluate::ScoredAnswer with_answer(evaluate::ScoredAnswer sample, std::string text) {
  sample.pred = std::move(text);
  return sample;
}

// Asks the servers. Returns the samples with their answers, in the order of rows and of the answers
// of a row. Throws what remote::refuse_failures() throws.
std::vector<evaluate::ScoredAnswer> answered_rows(const remote::Servers& servers,
                                                  const ReferenceRows& rows,
                                                  const remote::RemoteQuestions& questions,
                                                  const Log& log) {
  std::map<io::AnswerJournal::Place, std::string> texts;
  const auto failures =
      remote::answer_remotely(servers, questions, log, [&](const RemoteAnswer& answer) {
        texts[{answer.prompt, answer.sample}] = answer.text.text;
      });
  if (!failures.empty()) remote::refuse_failures(failures, rows.prompts.source_indices);
  std::vector<evaluate::ScoredAnswer> all;
  for (auto& [place, text] : texts)
    all.push_back(with_answer(rows.samples[static_cast<size_t>(place.first)], std::move(text)));
  return all;
}

// Like answered_rows(), but writes the samples to `path`, and keeps answers beside it until then.
std::vector<evaluate::ScoredAnswer> written_answered_rows(const remote::Servers& servers,
                                                          const ReferenceRows& rows,
                                                          remote::RemoteQuestions questions,
                                                          const std::filesystem::path& path,
                                                          const Log& log) {
  std::vector<evaluate::ScoredAnswer> all;
  with_kept_answers(servers, rows.prompts, std::move(questions), path.string(), log,
                    Incomplete::Unused, [&](const AnswerLines& lines) {
                      for (const auto& [place, line] : lines)
                        all.push_back(with_answer(rows.samples[static_cast<size_t>(place.first)],
                                                  Json::parse(line).at("completion")));
                      evaluate::write_samples(path, all);
                    });
  return all;
}

}  // namespace

void check_remote_flags(const AnswerPlace& place, const settings::AnswerCall& call) {
  if (!place.remote.is_used()) {
    config::refuse_without_effect(place.remote, {"engine_model", "engine_timeout"},
                                  "without --engine");
    return;
  }
  config::refuse_without_effect(
      call.engine,
      {"kv_blocks", "prefill_chunk", "weights", "activations", "kv_dtype", "cuda_graphs"},
      kServersDecide);
  config::refuse_without_effect(call.engine, {"deterministic"},
                                "with --engine: a server's texts depend on what else it computes");
  config::refuse_without_effect(
      call.model, {"adapter", "revision", "dtype", "quantization", "double_quant"}, kServersDecide);
  config::refuse_without_effect(place.ranks.devices, {"devices", "threads"}, kServersDecide);
  config::refuse_without_effect(
      place.ranks.members,
      {"nproc_per_node", "gpu_ids", "shutdown_timeout", "failure_grace", "numa_binding"},
      kServersDecide);
  config::refuse_without_effect(call.sampling, {"logprobs"},
                                "with --engine: its servers give texts alone");
}

int generate_remotely(const Context& context, const settings::RemoteSettings& remote,
                      const settings::GenerateCall& call) {
  const settings::GenerateFlags& flags = call.flags;
  const remote::Servers servers = remote::read_servers(remote, call.model.model);
  const bool is_typed = !flags.prompt.names.empty();
  const std::vector<std::string>& typed = flags.prompt.names;
  config::refuse_without_effect(flags, {"interactive"},
                                "with --engine: a conversation needs the model itself");
  config::refuse_without_effect(flags, {"schema"}, "with --engine: its server would not know it");
  if (is_typed == !flags.prompts.empty() ||
      std::find(typed.begin(), typed.end(), "") != typed.end())
    throw ConfigError("wanted --prompts FILE or --prompt TEXT (which is not empty) with --engine",
                      {.key = "--prompts", .hint = "give one of them"});
  config::refuse_without_effect(flags, {"template_path"}, kServersDecide);
  if (is_typed) config::refuse_without_effect(flags, {"bad_rows"}, "with --prompt");
  const Log log = context.log();
  RemotePrompts prompts = read_prompts(flags, log);
  remote::RemoteQuestions questions = questions_of(prompts.prompts, remote, call, log);
  questions.progress = {.label = "generate", .unit = "answer"};
  const bool text_alone = is_typed && !context.common.json && flags.output.empty();
  if (text_alone) questions.progress.style = telemetry::ProgressStyle::None;
  if (flags.output.empty())
    print_remote_answers(servers, prompts, questions, log, text_alone);
  else
    write_remote_answers(servers, prompts, std::move(questions), flags.output, log);
  return 0;
}

int evaluate_remotely(const Context& context, const settings::RemoteSettings& remote,
                      const settings::EvalCall& call) {
  const remote::Servers servers = remote::read_servers(remote, call.model.model);
  check_evaluation(call.flags);
  const Scoring scoring(call.metrics, servers.model, call.flags.output_dir);
  const Log log = context.log();
  const ReferenceRows rows = read_reference_rows(call, log);
  remote::RemoteQuestions questions = questions_of(rows.prompts.prompts, remote, call, log);
  questions.progress = {.label = "answer", .unit = "row"};
  const std::vector<evaluate::ScoredAnswer> answered =
      call.flags.output_dir.empty()
          ? answered_rows(servers, rows, questions, log)
          : written_answered_rows(servers, rows, std::move(questions),
                                  std::filesystem::path(call.flags.output_dir) / "samples.jsonl",
                                  log);
  CONVOY_INVARIANT(std::ssize(answered) == std::ssize(rows.samples) * call.sampling.n,
                   "answers are lost");
  scoring.report(context, answered);
  return 0;
}

}  // namespace convoy::apps
