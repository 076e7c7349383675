// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/serve_model.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <set>
#include <vector>

#include "convoy/apps/recipes/answer_prompts.h"
#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/apps/recipes/rank_share.h"
#include "convoy/apps/recipes/serving/answering_engine.h"
#include "convoy/apps/recipes/serving/front_desk.h"
#include "convoy/core/base/error.h"
#include "convoy/core/settings/template_kwargs.h"

namespace convoy::recipes {
namespace {

using Clock = std::chrono::steady_clock;

// While nothing runs, so often the server looks whether it is to stop.
constexpr std::chrono::milliseconds kIdleWait(100);

struct NamedAdapters {
  ServedNames names;
  std::vector<std::filesystem::path> folders;
};

NamedAdapters named_adapters(const ServeRun& run) {
  NamedAdapters adapters;
  const std::string& name = run.flags.served_name;
  adapters.names.emplace(name.empty() ? run.model.model.model : name, 0);
  for (const std::string& given : run.flags.adapters.names) {
    const size_t equals = given.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == given.size())
      throw ConfigError(fmt::format("--adapter needs NAME=DIR, found `{}`", given),
                        {.key = "--adapter", .hint = "such as --adapter sums=runs/sums/adapter"});
    adapters.folders.emplace_back(given.substr(equals + 1));
    if (!adapters.names.emplace(given.substr(0, equals), std::ssize(adapters.folders)).second)
      throw ConfigError(fmt::format("two models would be named `{}`", given.substr(0, equals)),
                        {.key = "--adapter", .hint = "give each adapter a name of its own"});
  }
  return adapters;
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

std::set<std::string> keys_for(const settings::ServeFlags& flags) {
  if (!flags.api_key_file.empty()) return read_api_keys(flags.api_key_file);
  if (!is_loopback(flags.host))
    throw ConfigError(
        fmt::format("--host {} is reachable from other machines", flags.host),
        {.key = "--api-key-file", .hint = "give it a file with a key, or leave --host out"});
  return {};
}

std::vector<std::string> listed(const ServedNames& names) {
  std::vector<std::string> list;
  for (const auto& [name, adapter] : names) list.push_back(name);
  return list;
}

void answer_until_stopped(AnsweringEngine& answers, FrontDesk& desk, double shutdown_seconds,
                          const std::atomic<bool>& stop_wanted) {
  std::optional<Clock::time_point> deadline;
  for (;;) {
    const bool waits = answers.is_idle() && !deadline;
    for (ExchangePtr& exchange : desk.passed_on(waits ? kIdleWait : std::chrono::milliseconds(0)))
      answers.take(std::move(exchange));
    if (!answers.is_idle()) answers.step();
    if (!stop_wanted) continue;
    if (!deadline)
      deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                    std::chrono::duration<double>(shutdown_seconds));
    else if (answers.is_idle())
      return;
    if (Clock::now() < *deadline) continue;
    return answers.fail_all(ApiError(503, "the server stopped before the answer was complete"));
  }
}

}  // namespace

void serve_model(const ServeRun& run, const std::atomic<bool>& stop_wanted, const Log& log) {
  const settings::ServeFlags& flags = run.flags;
  const std::set<std::string> keys = keys_for(flags);
  const NamedAdapters named = named_adapters(run);
  RankShare share(run.ranks);
  const LoadedModel loaded = load_model(
      model_request(run.model.model, run.engine, flags.template_path, share.rank_device()), log);
  const at::NoGradGuard no_grad;
  std::optional<adapters::ServedAdapters> served;
  if (!named.folders.empty()) served.emplace(*loaded.model, named.folders);
  generate::EngineConfig config = engine_config(run.engine, loaded, {}, log);
  config.adapters = served ? &*served : nullptr;
  generate::Engine engine(*loaded.model, loaded.tokenizer, config);
  const data::SampleEncoder encoder(loaded.tokenizer, loaded.template_or_null(),
                                    data::Supervision());
  AnsweringEngine answers(
      engine, encoder, loaded,
      {.names = named.names,
       .template_kwargs = settings::template_kwargs(flags.template_kwargs, "--template-kwargs"),
       .most_rows = config.max_rows + flags.max_waiting},
      log);
  FrontDesk desk(listed(named.names), keys, stop_wanted);
  http::Server server(flags.host, static_cast<int>(flags.port), {},
                      [&desk](ExchangePtr exchange) { desk.take(std::move(exchange)); });
  log.info(fmt::format("listening on http://{}:{}/v1", flags.host, server.port()));
  answer_until_stopped(answers, desk, flags.shutdown_time, stop_wanted);
}

}  // namespace convoy::recipes
