// SPDX-License-Identifier: Apache-2.0
//
// Rewards of real HTTP servers.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/core/http/http_server.h"
#include "convoy/farm/rewards/reward.h"

namespace convoy::rewards {
namespace {

using nlohmann::json;

// Answers POST requests by `respond`, which gets the body and the number of requests before.
class Server {
 public:
  using Respond = std::function<void(http::Exchange&, const json& body, int before)>;

  explicit Server(Respond respond)
      : server_("127.0.0.1", 0, {}, [this, respond](std::unique_ptr<http::Exchange> exchange) {
          if (exchange->method() == "GET")
            return exchange->respond(200, {}, R"({"data": [{"id": "m"}]})");
          respond(*exchange, json::parse(exchange->body()), requests_++);
        }) {}

  std::string address() const { return fmt::format("http://127.0.0.1:{}", server_.port()); }
  int requests() const { return requests_; }

 private:
  std::atomic<int> requests_ = 0;
  http::Server server_;
};

std::vector<JudgedText> three_texts() {
  std::vector<JudgedText> texts(3);
  for (size_t at = 0; at < texts.size(); ++at) {
    texts[at].prompt = "What?";
    texts[at].text = std::string(at + 1, 'x');
    texts[at].answers = {"42"};
    texts[at].row = {{"level", "hard"}};
    texts[at].row_number = static_cast<int64_t>(at) + 5;
    texts[at].sample = 2;
  }
  return texts;
}

bool no_stop() { return false; }

settings::RewardSettings http_reward(const std::string& url, double timeout_s = 60) {
  settings::RewardSettings settings;
  settings.kind = "http";
  settings.name = "scores";
  settings.url = url;
  settings.timeout_s = timeout_s;
  return settings;
}

template <class Kind>
std::string error_of(const settings::RewardSettings& settings) {
  try {
    make_reward(settings)->values(three_texts(), no_stop);
  } catch (const Kind& error) {
    EXPECT_FALSE(error.location().hint.empty());
    return error.what();
  }
  return "no error";
}

std::string answer_error(const std::string& body) {
  Server server(
      [&](http::Exchange& exchange, const json&, int) { exchange.respond(200, {}, body); });
  return error_of<DataError>(http_reward(server.address()));
}

TEST(HttpReward, PostsAListAndReadsAListOfNumbers) {
  Server server([](http::Exchange& exchange, const json& texts, int) {
    json numbers = json::array();
    for (const json& text : texts) {
      EXPECT_EQ(text["prompt"], "What?");
      EXPECT_EQ(text["answers"], json({"42"}));
      EXPECT_EQ(text["row"]["level"], "hard");
      numbers.push_back(static_cast<double>(text["text"].get<std::string>().size()) / 4);
    }
    exchange.respond(200, {}, numbers.dump());
  });
  const auto reward = make_reward(http_reward(server.address() + "/score"));
  EXPECT_EQ(reward->values(three_texts(), no_stop), (std::vector<double>{0.25, 0.5, 0.75}));
  EXPECT_EQ(reward->values({}, no_stop), std::vector<double>());
  EXPECT_EQ(server.requests(), 1);
}

TEST(HttpReward, AnAnswerWithoutANumberIsAnErrorOfItsRow) {
  EXPECT_EQ(answer_error("[1, null, 2]"),
            "reward `scores`: row 6, sample 2: wanted a finite number, found null");
  EXPECT_EQ(answer_error("[1, 2, \"3\"]"),
            "reward `scores`: row 7, sample 2: wanted a finite number, found \"3\"");
  EXPECT_EQ(answer_error("[1]"), "reward `scores`: row 6, sample 2: wanted 3 numbers, found 1");
  EXPECT_EQ(answer_error("[1, 2, 3, 4]"),
            "reward `scores`: row 7, sample 2: wanted 3 numbers, found 4");
  EXPECT_EQ(answer_error("<html>"),
            "reward `scores`: row 5, sample 2: wanted a JSON list of numbers, found <html>");
  EXPECT_NE(answer_error("[1, 2, 1e999]").find("row "), std::string::npos);
}

TEST(HttpReward, WhatMayPassIsTriedAgain) {
  Server server([](http::Exchange& exchange, const json&, int before) {
    if (before == 0) return exchange.respond(503, {{"Retry-After", "0"}}, "busy");
    if (before == 1) return exchange.respond(500, {}, "it crashed");
    exchange.respond(200, {}, "[1, 2, 3]");
  });
  EXPECT_EQ(make_reward(http_reward(server.address()))->values(three_texts(), no_stop),
            (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(server.requests(), 3);
}

TEST(HttpReward, ARefusalIsQuotedAndNotTriedAgain) {
  Server server([](http::Exchange& exchange, const json&, int) {
    exchange.respond(422, {}, R"({"detail": "field `text` is too long"})");
  });
  const std::string error = error_of<ConfigError>(http_reward(server.address()));
  EXPECT_NE(error.find("refuses the texts with status 422: field `text` is too long"),
            std::string::npos)
      << error;
  EXPECT_EQ(server.requests(), 1);
}

TEST(HttpReward, AServerThatStaysAwayOrFailsIsANetworkError) {
  const std::string away = error_of<NetworkError>(http_reward("http://127.0.0.1:1", 0.5));
  EXPECT_NE(away.find("gave no rewards within 0.5 s"), std::string::npos) << away;
  Server broken(
      [](http::Exchange& exchange, const json&, int) { exchange.respond(500, {}, "it crashed"); });
  const std::string fault = error_of<NetworkError>(http_reward(broken.address()));
  EXPECT_NE(fault.find("status 500: it crashed"), std::string::npos) << fault;
  EXPECT_EQ(broken.requests(), 4);
}

// A server that keeps its exchanges and never answers them.
class SilentServer {
 public:
  SilentServer()
      : server_("127.0.0.1", 0, {}, [this](std::unique_ptr<http::Exchange> exchange) {
          const std::lock_guard<std::mutex> lock(mutex_);
          kept_.push_back(std::move(exchange));
        }) {}
  std::string address() const { return fmt::format("http://127.0.0.1:{}", server_.port()); }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<http::Exchange>> kept_;
  http::Server server_;
};

TEST(HttpReward, ASilentServerIsLeftAtTheLimitAndAtAStop) {
  SilentServer server;
  const std::string error = error_of<NetworkError>(http_reward(server.address(), 0.2));
  EXPECT_NE(error.find("gave no rewards within 0.2 s"), std::string::npos) << error;
  const auto reward = make_reward(http_reward(server.address()));
  int asked = 0;
  EXPECT_THROW(reward->values(three_texts(), [&] { return ++asked > 2; }), StopRequest);
}

TEST(HttpReward, AnAddressWithAKeyInItIsRefused) {
  settings::RewardSettings settings = http_reward("http://user:key@127.0.0.1/score");
  EXPECT_THROW(make_reward(settings), ConfigError);
}

// A judge's reply to a prompt.
using Reply = std::function<std::string(const std::string& prompt)>;

class Judge {
 public:
  explicit Judge(Reply reply)
      : server_([reply](http::Exchange& exchange, const json& body, int) {
          EXPECT_EQ(body["model"], "m");
          EXPECT_EQ(body["temperature"], 0);
          const json answer = {
              {"choices",
               {{{"message",
                  {{"role", "assistant"}, {"content", reply(body["messages"][0]["content"])}}},
                 {"finish_reason", "stop"}}}}};
          exchange.respond(200, {}, answer.dump());
        }),
        prompt_(std::filesystem::path(::testing::TempDir()) / "judge_prompt.txt") {
    write_prompt("{{ problem }} ({{ row.level }}, {{ answer }}): {{ text }}");
  }

  void write_prompt(const std::string& text) const { std::ofstream(prompt_) << text; }

  settings::RewardSettings settings() const {
    settings::RewardSettings settings;
    settings.kind = "judge";
    settings.name = "quality";
    settings.url = server_.address() + "/v1";
    settings.model = "m";
    settings.prompt = prompt_;
    return settings;
  }

 private:
  Server server_;
  std::filesystem::path prompt_;
};

TEST(JudgeReward, ReadsTheScoreInEachReply) {
  const Judge judge([](const std::string& prompt) -> std::string {
    if (prompt == "What? (hard, 42): x") return "It is fine.\nScore: 8/10";
    if (prompt == "What? (hard, 42): xx") return "0.5";
    if (prompt == "What? (hard, 42): xxx") return "<think>0.9?</think>**Score:** 25%";
    return "another prompt: " + prompt;
  });
  const auto reward = make_reward(judge.settings());
  EXPECT_EQ(reward->values(three_texts(), no_stop), (std::vector<double>{0.8, 0.5, 0.25}));
  EXPECT_EQ(reward->values(three_texts(), no_stop), (std::vector<double>{0.8, 0.5, 0.25}));
}

TEST(JudgeReward, DoesNotSeeThoughts) {
  const Judge judge([](const std::string& prompt) {
    return prompt.ends_with(": so") ? "1" : "the prompt was: " + prompt;
  });
  std::vector<JudgedText> texts = three_texts();
  texts.resize(1);
  texts[0].text = "<think>hm</think>so";
  EXPECT_EQ(make_reward(judge.settings())->values(texts, no_stop), (std::vector<double>{1}));
}

TEST(JudgeReward, AReplyWithoutAScoreIsAnErrorOfItsRow) {
  const Judge judge([](const std::string& prompt) -> std::string {
    return prompt.ends_with(": xx") ? "It is good,\nI think." : "Score: 1";
  });
  EXPECT_EQ(
      error_of<DataError>(judge.settings()),
      "reward `quality`: row 6, sample 2: wanted a score of 0 to 1 in the reply, found `It is "
      "good, I think.`");
}

TEST(JudgeReward, APromptWithoutItsColumnIsAnErrorOfItsRow) {
  const Judge judge([](const std::string&) { return "1"; });
  judge.write_prompt("{{ row.topic }}: {{ text }}");
  const std::string error = error_of<DataError>(judge.settings());
  EXPECT_NE(error.find("row 5, sample 2: "), std::string::npos) << error;
  EXPECT_NE(error.find("row.topic"), std::string::npos) << error;
}

TEST(JudgeReward, MistakesAreFoundBeforeTheFirstText) {
  const Judge judge([](const std::string&) { return "1"; });
  settings::RewardSettings settings = judge.settings();
  settings.model = "other";
  EXPECT_NE(error_of<ConfigError>(settings).find("has no model `other`"), std::string::npos);
  settings = judge.settings();
  settings.prompt = "/no/such/file";
  EXPECT_THROW(make_reward(settings), Error);
  judge.write_prompt("{{ txt }}");
  EXPECT_NE(error_of<ConfigError>(judge.settings()).find("txt"), std::string::npos);
  settings = judge.settings();
  settings.url = "http://127.0.0.1:1/v1";
  judge.write_prompt("{{ text }}");
  EXPECT_NE(error_of<NetworkError>(settings).find("reward `quality`"), std::string::npos);
}

}  // namespace
}  // namespace convoy::rewards
