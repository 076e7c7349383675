// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>

#include "convoy/core/base/error.h"
#include "convoy/core/base/nearby_files.h"
#include "convoy/farm/process/parsing/judge_scores.h"
#include "convoy/farm/process/parsing/prompt_template.h"
#include "convoy/farm/process/parsing/think_text.h"
#include "convoy/farm/process/pipeline/row_values.h"
#include "convoy/farm/remote/http_text_engine.h"
#include "convoy/farm/rewards/judged_text.h"
#include "convoy/farm/rewards/reward_kinds.h"

namespace convoy::rewards {
namespace {

process::PromptTemplate prompt_of(const settings::RewardSettings& settings) {
  return with_place_of(settings, "prompt", [&] {
    std::error_code ignored;
    if (!std::filesystem::exists(settings.prompt, ignored))
      throw DataError(
          "there is no such file",
          {.file = settings.prompt, .hint = unreadable_file_hint(settings.prompt, ENOENT)});
    process::PromptTemplate prompt(process::read_prompt_file(settings.prompt, "reward.prompt"),
                                   settings.prompt, {"problem", "text", "answer"});
    const std::vector<std::string> names = prompt.names();
    if (std::find(names.begin(), names.end(), "text") == names.end())
      throw ConfigError("the prompt does not show the text that is judged",
                        {.file = settings.prompt, .hint = "write {{ text }} where it belongs"});
    return prompt;
  });
}

// Errors of the layer `remote` name flags that this setting does not have.
template <class Body>
void with_keys_of_reward(const settings::RewardSettings& settings, const Body& body) {
  try {
    body();
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("reward `{}`: {}", settings.name, error.what()),
                      {.key = settings.key + ".url",
                       .hint = "check url, which mostly ends in /v1, model, and the key in "
                               "CONVOY_ENGINE_KEY"});
  } catch (const NetworkError& error) {
    throw NetworkError(
        fmt::format("reward `{}`: {}", settings.name, error.what()),
        {.key = settings.key + ".url", .hint = "start the server, or check address and network"});
  }
}

remote::Servers judge_server(const settings::RewardSettings& settings) {
  settings::RemoteSettings remote;
  remote.engine = {settings.url};
  remote.engine_model = settings.model;
  remote.engine_timeout = static_cast<int64_t>(std::ceil(settings.timeout_s));
  return with_place_of(settings, "url", [&] { return remote::read_servers(remote, {}); });
}

remote::Servers checked_server(const settings::RewardSettings& settings,
                               const http::CurlLibrary& curl) {
  remote::Servers servers = judge_server(settings);
  with_keys_of_reward(settings, [&] {
    http::Client client(curl, servers.limits());
    remote::look_at_servers(servers, client, Log());
  });
  return servers;
}

class JudgeReward final : public Reward {
 public:
  explicit JudgeReward(settings::RewardSettings settings)
      : settings_(std::move(settings)),
        prompt_(prompt_of(settings_)),
        engine_(remote::make_http_text_engine(curl_, checked_server(settings_, curl_), {}, Log())) {
  }

  void ask(std::span<const JudgedText> texts, const std::function<bool()>& stop_requested,
           const TakeValue& take) override {
    for (size_t text = 0; text < texts.size(); ++text)
      engine_->submit(request_of(texts[text], static_cast<int64_t>(text)));
    try {
      with_keys_of_reward(settings_, [&] {
        while (engine_->unfinished() > 0) {
          check_stop(stop_requested);
          for (const process::TextResult& reply : engine_->step()) {
            const auto text = static_cast<size_t>(reply.number);
            take(text, score_in(reply, texts[text]));
          }
        }
      });
    } catch (...) {
      for (size_t text = 0; text < texts.size(); ++text)
        engine_->cancel(static_cast<int64_t>(text));
      throw;
    }
  }

 private:
  process::TextRequest request_of(const JudgedText& text, int64_t number) const {
    const std::string user = rendered(text);
    nlohmann::ordered_json messages = nlohmann::ordered_json::array();
    messages.push_back({{"role", "user"}, {"content", user}});
    return {.number = number,
            .prompt = {.messages = std::move(messages)},
            .sampling = {.temperature = 0, .top_p = 1, .max_new_tokens = settings_.max_new_tokens},
            .draw = {.row = text.row_number, .sample = static_cast<uint64_t>(text.sample)}};
  }

  // A judge does not see thoughts, as in data processing.
  std::string rendered(const JudgedText& text) const {
    std::map<std::string, std::string> values = process::prompt_values(text.prompt, text.row);
    values["text"] = process::split_think(text.text, text.begins_in_think).said;
    if (!text.answers.empty()) values["answer"] = text.answers.front();
    try {
      return prompt_.render(values);
    } catch (const DataError& error) {
      refuse_text(settings_, text, error.what(),
                  "take the name out of the prompt, or the row out "
                  "of the data");
    }
  }

  double score_in(const process::TextResult& reply, const JudgedText& text) const {
    if (reply.finish == process::TextFinish::Error) {
      if (reply.error_may_pass)
        throw NetworkError(
            fmt::format("row {}, sample {}: {}", text.row_number, text.sample, reply.error),
            {.hint = "look at the server, then run the same command again"});
      refuse_text(settings_, text, reply.error, "look at the server and at the text");
    }
    const std::string said = process::split_think(reply.text, false).said;
    const auto score = process::read_judge_scores(said, {{"score", 1}}).score;
    if (score) return *score;
    if (const auto whole = process::read_score(said)) return *whole;
    refuse_text(
        settings_, text,
        fmt::format("wanted a score of 0 to 1 in the reply{}, found `{}`",
                    reply.finish == process::TextFinish::Length ? ", which max_new_tokens cut" : "",
                    shortened(said)),
        "let the prompt ask for a line such as `Score: 0.8`, or raise max_new_tokens");
  }

  static std::string shortened(const std::string& reply) { return remote::Servers{}.quoted(reply); }

  settings::RewardSettings settings_;
  process::PromptTemplate prompt_;
  http::CurlLibrary curl_;
  std::unique_ptr<process::TextEngine> engine_;
};

}  // namespace

std::unique_ptr<Reward> make_judge_reward(const settings::RewardSettings& settings) {
  return std::make_unique<JudgeReward>(settings);
}

std::vector<std::string> columns_of_judge(const settings::RewardSettings& settings) {
  constexpr std::string_view kColumn = "row.";
  std::vector<std::string> columns;
  for (const std::string& name : prompt_of(settings).names())
    if (name.starts_with(kColumn)) columns.push_back(name.substr(kColumn.size()));
  return columns;
}

std::string use_of_judged_answers(const settings::RewardSettings& settings) {
  const std::vector<std::string> names = prompt_of(settings).names();
  if (std::find(names.begin(), names.end(), "answer") == names.end()) return "";
  return fmt::format("the prompt of reward `{}` shows it as {{{{ answer }}}}", settings.name);
}

void check_judge_reward(const settings::RewardSettings& settings) {
  prompt_of(settings);
  judge_server(settings);
}

}  // namespace convoy::rewards
