// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/serve_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <iostream>
#include <limits>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <sstream>

#include "convoy/apps/recipes/answer_prompts.h"
#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/apps/recipes/rank_share.h"
#include "convoy/apps/recipes/serving/api_answer.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/trimmed.h"
#include "convoy/core/http/http_server.h"
#include "convoy/core/settings/template_kwargs.h"
#include "convoy/data/datasets/encode_sample.h"
#include "convoy/generate/engine/certain_text.h"

namespace convoy::recipes {
namespace {

using Clock = std::chrono::steady_clock;
using ExchangePtr = std::unique_ptr<http::Exchange>;

// While nothing runs, so often the server looks whether it is to stop.
constexpr std::chrono::milliseconds kIdleWait(100);
const http::Headers kJson = {{"content-type", "application/json"}};

int64_t now_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void respond(http::Exchange& exchange, const ApiError& error, http::Headers headers = kJson) {
  if (error.status() == 429 || error.status() == 503) headers.emplace_back("retry-after", "1");
  exchange.respond(error.status(), headers, dumped(error.body()) + "\n");
}

// The names that requests may use, and the adapter of each: 0 = none.
using ServedNames = std::map<std::string, int64_t>;

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

std::set<std::string> read_keys(const std::string& file) {
  std::set<std::string> keys;
  if (file.empty()) return keys;
  std::istringstream lines(read_file(file));
  for (std::string line; std::getline(lines, line);)
    if (const std::string key(trimmed(line, " \t\r")); !key.empty()) keys.insert(key);
  if (keys.empty())
    throw ConfigError("the file has no key; write one a line",
                      {.file = file, .key = "--api-key-file"});
  return keys;
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

// Requests from the server's threads to the engine's.
class Inbox {
 public:
  void put(ExchangePtr exchange) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(exchange));
    }
    changed_.notify_one();
  }
  // All that wait; waits for one up to `time`.
  std::deque<ExchangePtr> take(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, time, [this] { return !waiting_.empty(); });
    return std::exchange(waiting_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<ExchangePtr> waiting_;
};

// A request whose answers are being computed.
class RunningAnswer {
 public:
  RunningAnswer(ExchangePtr exchange, AnswerHead head, const ApiRequest& request, int64_t choices)
      : exchange_(std::move(exchange)),
        head_(std::move(head)),
        streams_(request.streams),
        reports_usage_(request.reports_usage),
        unended_(choices),
        completions_(static_cast<size_t>(choices)),
        certain_(static_cast<size_t>(choices), generate::CertainText(request.sampling.stop.names)) {
  }

  bool streams() const { return streams_; }
  bool is_open() const { return exchange_->is_open(); }
  bool is_complete() const { return unended_ == 0; }
  void count_prompt(int64_t tokens) { usage_.prompt_tokens += tokens; }

  void begin() {
    if (!streams_) return;
    exchange_->start(200, {{"content-type", "text/event-stream"}, {"cache-control", "no-cache"}});
    for (int64_t choice = 0; choice < unended_; ++choice)
      exchange_->send(first_part(head_, choice));
  }
  void grow(int64_t choice, std::string_view text) {
    send_text(choice, certain_[static_cast<size_t>(choice)].grow(text));
  }
  void end(int64_t choice, generate::Completion completion, const text::Tokenizer& tokenizer) {
    --unended_;
    usage_.completion_tokens += std::ssize(completion.token_ids);
    if (streams_) {
      send_text(choice, certain_[static_cast<size_t>(choice)].end(completion.text));
      exchange_->send(end_part(head_, choice, completion.finish_reason));
    }
    completions_[static_cast<size_t>(choice)] = std::move(completion);
    if (!is_complete()) return;
    if (!streams_)
      return exchange_->respond(
          200, kJson, dumped(whole_answer(head_, completions_, usage_, tokenizer)) + "\n");
    if (reports_usage_) exchange_->send(usage_part(head_, usage_));
    exchange_->send(kLastEvent);
  }
  // A stream that has begun ends with the error as its last event.
  void fail(const ApiError& error) {
    if (streams_)
      exchange_->send(event(error.body()));
    else
      respond(*exchange_, error);
  }

 private:
  void send_text(int64_t choice, std::string_view text) {
    if (streams_ && !text.empty()) exchange_->send(text_part(head_, choice, text));
  }

  ExchangePtr exchange_;
  AnswerHead head_;
  bool streams_;
  bool reports_usage_;
  int64_t unended_;
  Usage usage_;
  std::vector<generate::Completion> completions_;
  std::vector<generate::CertainText> certain_;
};

// Turns requests into rows of the engine, and what the engine says into answers. One thread.
class AnsweringEngine {
 public:
  AnsweringEngine(generate::Engine& engine, const data::SampleEncoder& encoder,
                  const LoadedModel& loaded, const ServedNames& names, Json template_kwargs,
                  int64_t most_rows, const Log& log)
      : engine_(engine),
        encoder_(encoder),
        loaded_(loaded),
        names_(names),
        template_kwargs_(std::move(template_kwargs)),
        most_rows_(most_rows),
        log_(log) {}

  bool is_idle() const { return rows_.empty(); }

  // Answers at once where the request is at fault.
  void take(ExchangePtr exchange) {
    try {
      begin(exchange);
    } catch (const ApiError& error) {
      respond(*exchange, error);
    } catch (const Error& error) {
      respond(*exchange, ApiError(400, error.sentence()));
    }
  }

  void step() {
    cancel_the_left();
    try {
      for (generate::Completion& ended : engine_.step()) end(std::move(ended));
    } catch (const Error& error) {
      log_.warning(fmt::format("a step failed: {}", error.sentence()));
      fail_all(ApiError(500, error.sentence()));
      return;
    }
    for (const auto& [number, row] : rows_)
      if (row.answer->streams()) row.answer->grow(row.choice, engine_.text_so_far(number));
  }

  void fail_all(const ApiError& error) {
    for (const auto& [number, row] : rows_) {
      engine_.cancel(number);
      if (failed_.insert(row.answer.get()).second) row.answer->fail(error);
    }
    failed_.clear();
    rows_.clear();
  }

 private:
  struct Row {
    std::shared_ptr<RunningAnswer> answer;
    int64_t choice;
  };

  void begin(ExchangePtr& exchange) {
    const bool is_chat = exchange->path() == "/v1/chat/completions";
    const ApiRequest request =
        parse_api_request(is_chat ? ApiKind::Chat : ApiKind::Completion, exchange->body());
    const auto named = names_.find(request.model);
    if (named == names_.end())
      throw ApiError(
          404,
          fmt::format("the model `{}` is not served: GET /v1/models lists those that are",
                      request.model),
          "model", "model_not_found");
    std::vector<std::vector<int32_t>> prompts = encode(request);
    const int64_t choices = std::ssize(prompts) * request.sampling.n;
    if (std::ssize(rows_) + choices > most_rows_)
      throw ApiError(429, "too many answers wait; try again later", {}, "rate_limit_exceeded");
    const AnswerHead head{.kind = request.kind,
                          .id = fmt::format("{}-{:016x}", is_chat ? "chatcmpl" : "cmpl", random_()),
                          .model = request.model,
                          .created = now_seconds()};
    submit(exchange, head, request, prompts, named->second);
  }

  void submit(ExchangePtr& exchange, const AnswerHead& head, const ApiRequest& request,
              std::vector<std::vector<int32_t>>& prompts, int64_t adapter) {
    settings::SamplingFlags sampling = request.sampling;
    sampling.seed = request.seed.value_or(static_cast<int64_t>(random_() >> 1));
    if (sampling.max_new_tokens == 0) sampling.max_new_tokens = kNoLimit;
    std::vector<generate::Request> rows;
    for (size_t prompt = 0; prompt < prompts.size(); ++prompt) {
      for (int64_t sample = 0; sample < sampling.n; ++sample) {
        rows.push_back(answer_request(sampling, static_cast<int64_t>(prompt), sample));
        rows.back().number = next_number_++;
        rows.back().prompt = prompts[prompt];
        rows.back().adapter = adapter;
      }
    }
    std::vector<int64_t> submitted;
    try {
      for (const generate::Request& row : rows) {
        engine_.submit(row);
        submitted.push_back(row.number);
      }
    } catch (const Error&) {
      for (const int64_t number : submitted) engine_.cancel(number);
      throw;
    }
    auto answer =
        std::make_shared<RunningAnswer>(std::move(exchange), head, request, std::ssize(submitted));
    for (const std::vector<int32_t>& prompt : prompts) answer->count_prompt(std::ssize(prompt));
    answer->begin();
    for (size_t choice = 0; choice < submitted.size(); ++choice)
      rows_.emplace(submitted[choice], Row{answer, static_cast<int64_t>(choice)});
  }

  std::vector<std::vector<int32_t>> encode(const ApiRequest& request) const {
    if (request.kind == ApiKind::Chat) {
      Json variables = template_kwargs_;
      variables.update(request.template_kwargs);
      return {encoder_
                  .encode_prompt({.kind = data::Sample::Kind::Chat,
                                  .messages = request.messages,
                                  .variables = variables,
                                  .file = "messages"})
                  .ids};
    }
    std::vector<std::vector<int32_t>> prompts;
    for (const auto& prompt : request.prompts) {
      if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompt))
        prompts.push_back(checked(*ids));
      else
        prompts.push_back(encoder_
                              .encode_prompt({.kind = data::Sample::Kind::Text,
                                              .text = std::get<std::string>(prompt),
                                              .file = "prompt"})
                              .ids);
    }
    return prompts;
  }
  const std::vector<int32_t>& checked(const std::vector<int32_t>& ids) const {
    for (const int32_t id : ids)
      if (id >= loaded_.tokenizer.vocab_size())
        throw ApiError(400, fmt::format("the vocabulary has no token {}", id), "prompt");
    return ids;
  }

  void end(generate::Completion completion) {
    const auto at = rows_.find(completion.number);
    if (at == rows_.end()) return;
    const Row row = at->second;
    rows_.erase(at);
    if (completion.finish_reason != generate::FinishReason::NotFinite)
      return row.answer->end(row.choice, std::move(completion), loaded_.tokenizer);
    drop(row.answer);
    row.answer->fail(ApiError(500, "the model's logits are not finite"));
  }

  void drop(const std::shared_ptr<RunningAnswer>& answer) {
    std::erase_if(rows_, [&](const auto& of_answer) {
      if (of_answer.second.answer != answer) return false;
      engine_.cancel(of_answer.first);
      return true;
    });
  }

  // Rows for clients that left.
  void cancel_the_left() {
    std::erase_if(rows_, [this](const auto& row) {
      if (row.second.answer->is_open()) return false;
      engine_.cancel(row.first);
      return true;
    });
  }

  // The engine ends a text at the model's last position.
  static constexpr int64_t kNoLimit = std::numeric_limits<int32_t>::max();

  generate::Engine& engine_;
  const data::SampleEncoder& encoder_;
  const LoadedModel& loaded_;
  const ServedNames& names_;
  Json template_kwargs_;
  int64_t most_rows_;
  Log log_;
  std::mt19937_64 random_{std::random_device()()};
  int64_t next_number_ = 1;
  std::map<int64_t, Row> rows_;  // by the engine's number
  std::set<const RunningAnswer*> failed_;
};

// Answers what needs no engine, on the server's threads; passes the rest on.
class FrontDesk {
 public:
  FrontDesk(Inbox& inbox, const ServedNames& names, std::set<std::string> keys,
            const std::atomic<bool>& stop_wanted)
      : inbox_(inbox), names_(names), keys_(std::move(keys)), stop_wanted_(stop_wanted) {}

  void take(ExchangePtr exchange) const {
    try {
      direct(exchange);
    } catch (const ApiError& error) {
      respond(*exchange, error);
    }
  }

 private:
  void direct(ExchangePtr& exchange) const {
    const std::string_view path = exchange->path();
    if (path == "/health") {
      require(*exchange, "GET");
      if (stop_wanted_) throw ApiError(503, "the server is about to stop");
      return exchange->respond(200, kJson, "{\"status\":\"ok\"}\n");
    }
    require_key(*exchange);
    if (path == "/v1/models") {
      require(*exchange, "GET");
      return exchange->respond(200, kJson, dumped(models()) + "\n");
    }
    if (path != "/v1/chat/completions" && path != "/v1/completions")
      throw ApiError(404, fmt::format("there is no {}", path));
    require(*exchange, "POST");
    if (stop_wanted_) throw ApiError(503, "the server is about to stop");
    inbox_.put(std::move(exchange));
  }

  static void require(const http::Exchange& exchange, std::string_view method) {
    if (exchange.method() != method)
      throw ApiError(405, fmt::format("{} takes {} requests", exchange.path(), method));
  }
  void require_key(const http::Exchange& exchange) const {
    if (keys_.empty()) return;
    constexpr std::string_view kScheme = "Bearer ";
    const std::string_view given = exchange.header("authorization");
    if (!given.starts_with(kScheme) || !keys_.contains(std::string(given.substr(kScheme.size()))))
      throw ApiError(401, "the request carries no valid key (Authorization: Bearer KEY)", {},
                     "invalid_api_key");
  }
  Json models() const {
    Json list = Json::array();
    for (const auto& [name, adapter] : names_)
      list.push_back(
          {{"id", name}, {"object", "model"}, {"created", started_}, {"owned_by", "convoy"}});
    return {{"object", "list"}, {"data", list}};
  }

  Inbox& inbox_;
  const ServedNames& names_;
  std::set<std::string> keys_;
  const std::atomic<bool>& stop_wanted_;
  int64_t started_ = now_seconds();
};

void answer_until_stopped(AnsweringEngine& answers, Inbox& inbox, double shutdown_seconds,
                          const std::atomic<bool>& stop_wanted) {
  std::optional<Clock::time_point> deadline;
  for (;;) {
    const bool waits = answers.is_idle() && !deadline;
    for (ExchangePtr& exchange : inbox.take(waits ? kIdleWait : std::chrono::milliseconds(0)))
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
  const std::set<std::string> keys = read_keys(flags.api_key_file);
  if (!is_loopback(flags.host) && keys.empty())
    throw ConfigError(
        fmt::format("--host {} is reachable from other machines", flags.host),
        {.key = "--api-key-file", .hint = "give it a file with a key, or leave --host out"});
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
  AnsweringEngine answers(engine, encoder, loaded, named.names,
                          settings::template_kwargs(flags.template_kwargs, "--template-kwargs"),
                          config.max_rows + flags.max_waiting, log);
  Inbox inbox;
  const FrontDesk desk(inbox, named.names, keys, stop_wanted);
  http::Server server(flags.host, static_cast<int>(flags.port), {},
                      [&desk](ExchangePtr exchange) { desk.take(std::move(exchange)); });
  log.info(fmt::format("listening on http://{}:{}/v1", flags.host, server.port()));
  answer_until_stopped(answers, inbox, flags.shutdown_time, stop_wanted);
}

}  // namespace convoy::recipes
