// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/serve_model.h"

#include <chrono>
#include <filesystem>
#include <optional>
#include <vector>

#include "convoy/apps/recipes/generate/answer_prompts.h"
#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/apps/recipes/rank_share.h"
#include "convoy/apps/recipes/serving/answering_engine.h"
#include "convoy/apps/serving/front_link.h"
#include "convoy/apps/serving/served_names.h"
#include "convoy/core/settings/template_kwargs.h"
#include "convoy/model/architecture/families/family.h"

namespace convoy::recipes {
namespace {

using Clock = std::chrono::steady_clock;

// Interval at which an idle server checks whether it has to stop.
constexpr std::chrono::milliseconds kIdleWait(100);
constexpr std::chrono::milliseconds kNoWait(0);

void answer_until_stopped(RequestReader& requests, AnsweringEngine& answers,
                          serving::FrontLink& front, double shutdown_seconds,
                          const std::atomic<bool>& stop_wanted) {
  std::optional<Clock::time_point> deadline;
  while (!front.is_lost()) {
    front.send_answers();
    const std::chrono::milliseconds wait = answers.is_idle() ? kIdleWait : kNoWait;
    for (ReadRequest& read : requests.wait(wait)) answers.take(std::move(read));
    if (!answers.is_idle()) answers.step();
    if (!stop_wanted) continue;
    if (!deadline)
      deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                    std::chrono::duration<double>(shutdown_seconds));
    else if (!front.has_requests())
      return;
    if (Clock::now() < *deadline) continue;
    return answers.fail_all(ApiError(503, "the server stopped before the answer was complete"));
  }
}

ServedNames numbered(const std::vector<std::string>& names) {
  ServedNames numbers;
  for (const std::string& name : names) numbers.emplace(name, std::ssize(numbers));
  return numbers;
}

std::vector<std::vector<int32_t>> end_ids_of(const std::vector<serving::NamedAdapter>& adapters,
                                             const text::Tokenizer& tokenizer) {
  std::vector<std::vector<int32_t>> ids;
  for (const serving::NamedAdapter& adapter : adapters)
    ids.push_back(adapter_end_ids(adapter.folder, tokenizer));
  return ids;
}

std::vector<std::filesystem::path> folders_of(const std::vector<serving::NamedAdapter>& adapters) {
  std::vector<std::filesystem::path> folders;
  for (const serving::NamedAdapter& adapter : adapters) folders.push_back(adapter.folder);
  return folders;
}

}  // namespace

void serve_model(const ServeRun& run, int socket, const std::atomic<bool>& stop_wanted,
                 const Log& log) {
  const settings::ServeFlags& flags = run.flags;
  const std::vector<serving::NamedAdapter> named = serving::named_adapters(flags);
  if (run.engine_number == 0)
    for (const serving::NamedAdapter& adapter : named) require_adapter(adapter.folder, log);
  RankShare share(run.ranks);
  OpenedModel opened = open_model(
      model_request(run.model.model, run.engine, flags.template_path, share.rank_device()), log);
  const int64_t positions = families::read_decoder_spec(opened.folder).max_positions;
  if (run.engine_number == 0)
    say_generation_memory(opened, run.engine,
                          rows_together(run.engine, opened.request.device, positions), 1, log);
  LoadedModel loaded = load_weights(std::move(opened), log);
  share.say_busy_cores(log);
  if (loaded.chat_template) loaded.chat_template->clock().go();  // a server's date changes
  const at::NoGradGuard no_grad;
  std::optional<adapters::ServedAdapters> served;
  if (!named.empty()) served.emplace(*loaded.model, folders_of(named));
  generate::EngineConfig config = engine_config(run.engine, loaded, {}, log);
  config.adapters = served ? &*served : nullptr;
  generate::Engine engine(*loaded.model, loaded.tokenizer, config);
  const data::SampleEncoder encoder(loaded.tokenizer, loaded.template_or_null(),
                                    data::Supervision());
  const std::vector<std::string> names = serving::served_names(run.model, flags);
  const settings::SamplingSources sampling{.model = model_sampling(loaded.folder)};
  settings::SamplingFlags of_server;
  static_cast<settings::SamplingValues&>(of_server) = flags.sampling;
  if (run.engine_number == 0) log.info(settings::sampling_line(of_server, sampling));
  const int64_t most_rows = config.max_rows + flags.max_waiting;
  const RequestParser parser(
      encoder, loaded,
      {.names = numbered(names),
       .template_kwargs = settings::template_kwargs(flags.template_kwargs, "--template-kwargs"),
       .most_rows = most_rows,
       .tool_call_parser = flags.tool_call_parser,
       .sampling = settings::sources_of_requests(flags.sampling, sampling),
       .adapter_end_ids = end_ids_of(named, loaded.tokenizer)});
  serving::FrontLink front(socket);
  RequestReader requests(front, parser);
  AnsweringEngine answers(
      engine, loaded.tokenizer,
      {.model_name = names.front(), .engine_number = run.engine_number, .most_rows = most_rows},
      log);
  front.tell_ready();
  front.send_answers();
  answer_until_stopped(requests, answers, front, flags.shutdown_time, stop_wanted);
}

}  // namespace convoy::recipes
