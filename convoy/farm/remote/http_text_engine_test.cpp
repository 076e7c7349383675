// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/remote/http_text_engine.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <mutex>

#include "convoy/core/base/error.h"
#include "convoy/core/http/http_server.h"
#include "convoy/farm/remote/server_load.h"

namespace convoy::remote {
namespace {

using nlohmann::json;
using process::TextFinish;
using process::TextResult;

const http::CurlLibrary& curl_library() {
  static const http::CurlLibrary library;
  return library;
}

constexpr const char* kText = R"({"choices":[{"text":"two","finish_reason":"stop"}]})";

// A server that answers by `respond`, which gets the prompt and how many requests had this prompt
// before.
class FakeServer {
 public:
  using Respond = std::function<void(http::Exchange&, const std::string& prompt, int before)>;

  explicit FakeServer(Respond respond)
      : server_("127.0.0.1", 0, {}, [this, respond](std::unique_ptr<http::Exchange> exchange) {
          if (exchange->method() == "GET") return exchange->respond(200, {}, "{}");
          const std::string prompt = json::parse(exchange->body()).at("prompt");
          int before = 0;
          {
            const std::lock_guard<std::mutex> lock(mutex_);
            before = asked_[prompt]++;
          }
          respond(*exchange, prompt, before);
        }) {}

  Servers named(const std::string& key = "") const {
    return {.addresses = {fmt::format("http://127.0.0.1:{}/v1", server_.port())},
            .model = "m",
            .key = key};
  }
  int asked(const std::string& prompt) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return asked_[prompt];
  }

 private:
  std::mutex mutex_;
  std::map<std::string, int> asked_;
  http::Server server_;
};

std::unique_ptr<process::TextEngine> engine_of(const Servers& servers,
                                               HttpEngineOptions options = {}) {
  return make_http_text_engine(curl_library(), servers, std::move(options), Log(LogLevel::Quiet));
}

void ask(process::TextEngine& engine, int64_t number, const std::string& prompt,
         int64_t priority = 0) {
  engine.submit({.number = number, .prompt = {.text = prompt}, .priority = priority});
}

std::map<int64_t, TextResult> all_results(process::TextEngine& engine) {
  std::map<int64_t, TextResult> results;
  while (engine.unfinished() > 0)
    for (TextResult& result : engine.step()) results[result.number] = std::move(result);
  return results;
}

TEST(HttpTextEngine, AsksAgainAfterFaultsAndGivesUpATextInTheEnd) {
  FakeServer server([](http::Exchange& exchange, const std::string& prompt, int before) {
    if (prompt == "bad") return exchange.respond(500, {}, "it crashed");
    if (prompt == "busy" && before < 6) return exchange.respond(503, {{"Retry-After", "0"}}, "");
    exchange.respond(200, {}, before == 0 ? "<html>" : kText);
  });
  const auto engine = engine_of(server.named());
  ask(*engine, 1, "good");
  ask(*engine, 2, "bad");
  EXPECT_EQ(engine->unfinished(), 2);
  std::map<int64_t, TextResult> results = all_results(*engine);
  EXPECT_EQ(results[1].text, "two");
  EXPECT_EQ(server.asked("good"), 2);
  EXPECT_EQ(results[2].finish, TextFinish::Error);
  EXPECT_TRUE(results[2].error_may_pass);
  EXPECT_NE(results[2].error.find("/v1: status 500: it crashed"), std::string::npos)
      << results[2].error;
  EXPECT_EQ(server.asked("bad"), 4);
}

TEST(HttpTextEngine, APromptThatBreaksItsConnectionFailsAloneAndSoon) {
  FakeServer server([](http::Exchange& exchange, const std::string& prompt, int) {
    if (prompt != "bad") return exchange.respond(200, {}, kText);
    // The answer is cut: the connection ends before the announced 100 bytes.
    exchange.start(200, {{"Content-Length", "100"}});
    exchange.send("half");
  });
  std::vector<std::string> told;
  const auto engine = engine_of(
      server.named(), {.warn = [&told](const std::string& text) { told.push_back(text); }});
  ask(*engine, 1, "bad");
  const auto begin = Clock::now();
  const std::map<int64_t, TextResult> results = all_results(*engine);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(10));
  EXPECT_EQ(results.at(1).finish, TextFinish::Error);
  EXPECT_FALSE(results.at(1).error_may_pass);
  EXPECT_NE(results.at(1).error.find("in the last of 4 requests for it; the server answers"),
            std::string::npos)
      << results.at(1).error;
  EXPECT_EQ(server.asked("bad"), 4);
  EXPECT_TRUE(told.empty()) << told.front();
}

TEST(HttpTextEngine, RefusalsForLoadDoNotCountAsTries) {
  FakeServer server([](http::Exchange& exchange, const std::string&, int before) {
    if (before < 5) return exchange.respond(429, {}, "slow down");
    exchange.respond(200, {}, kText);
  });
  const auto engine = engine_of(server.named());
  ask(*engine, 1, "text");
  EXPECT_EQ(all_results(*engine)[1].text, "two");
  EXPECT_EQ(server.asked("text"), 6);
}

TEST(HttpTextEngine, ABusyServerIsToldOnce) {
  FakeServer server([](http::Exchange& exchange, const std::string&, int before) {
    if (before < 3) return exchange.respond(429, {{"Retry-After", "0"}}, "slow down");
    exchange.respond(200, {}, kText);
  });
  std::vector<std::string> told;
  const auto engine = engine_of(server.named(), {.warn = [&told](const std::string& text) {
                                  if (text.find("busy") != std::string::npos) told.push_back(text);
                                }});
  ask(*engine, 1, "one");
  ask(*engine, 2, "two");
  EXPECT_EQ(all_results(*engine).size(), 2u);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find("/v1 is busy: 8 requests at once now"), std::string::npos) << told[0];
  EXPECT_NE(told[0].find("status 429: slow down"), std::string::npos) << told[0];
}

TEST(HttpTextEngine, CancelledTextsAreNotGiven) {
  std::vector<std::unique_ptr<http::Exchange>> none;
  FakeServer server([](http::Exchange& exchange, const std::string& prompt, int) {
    if (prompt != "quick") std::this_thread::sleep_for(std::chrono::milliseconds(20));
    exchange.respond(200, {}, kText);
  });
  const auto engine = engine_of(server.named(), {.requests = 2});
  for (int64_t number = 1; number <= 6; ++number) ask(*engine, number, "slow");
  engine->step();
  for (int64_t number = 1; number <= 6; ++number) engine->cancel(number);
  EXPECT_EQ(engine->unfinished(), 0);
  ask(*engine, 7, "quick");
  const std::map<int64_t, TextResult> results = all_results(*engine);
  EXPECT_EQ(results.size(), 1u);
  EXPECT_TRUE(results.contains(7));
}

TEST(HttpTextEngine, HigherPriorityGoesFirst) {
  std::mutex mutex;
  std::vector<std::string> order;
  FakeServer server([&](http::Exchange& exchange, const std::string& prompt, int) {
    const std::lock_guard<std::mutex> lock(mutex);
    order.push_back(prompt);
    exchange.respond(200, {}, kText);
  });
  const auto engine = engine_of(server.named(), {.requests = 1});
  ask(*engine, 1, "later");
  ask(*engine, 2, "first", 5);
  ask(*engine, 3, "last");
  all_results(*engine);
  EXPECT_EQ(order, (std::vector<std::string>{"first", "later", "last"}));
}

TEST(HttpTextEngine, AStepWaitsWhileAllRequestsAreUnderWay) {
  FakeServer server([](http::Exchange& exchange, const std::string&, int) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    exchange.respond(200, {}, kText);
  });
  const auto engine = engine_of(server.named(), {.requests = 1});
  ask(*engine, 1, "first");
  ask(*engine, 2, "second");
  int steps = 0;
  for (; engine->unfinished() > 0; ++steps) engine->step();
  EXPECT_LT(steps, 200);
}

TEST(HttpTextEngine, ARefusalOfEveryTextEndsTheRun) {
  FakeServer server([](http::Exchange& exchange, const std::string&, int) {
    exchange.respond(400, {}, R"({"error":{"message":"top_k of sk-123 is odd"}})");
  });
  const auto engine = engine_of(server.named("sk-123"));
  ask(*engine, 1, "text");
  try {
    all_results(*engine);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(error.sentence().find("answers with status 400: top_k of *** is odd"),
              std::string::npos)
        << error.sentence();
  }
}

// Returns the message of the error that ends the run. Counts the texts before it.
std::string fatal_words(process::TextEngine& engine, int& texts) {
  try {
    while (engine.unfinished() > 0)
      for (const TextResult& result : engine.step()) texts += result.finish != TextFinish::Error;
  } catch (const ConfigError& error) {
    return error.sentence();
  }
  return {};
}

TEST(HttpTextEngine, AMomentsMissAmongAnswersIsAskedForAgain) {
  for (const int status : {404, 307, 405}) {
    FakeServer server([status](http::Exchange& exchange, const std::string& prompt, int before) {
      if (prompt == "odd" && before == 0) return exchange.respond(status, {}, "not now");
      if (prompt != "odd") std::this_thread::sleep_for(std::chrono::milliseconds(30));
      exchange.respond(200, {}, kText);
    });
    const auto engine = engine_of(server.named());
    for (int64_t number = 1; number <= 4; ++number) ask(*engine, number, "even");
    ask(*engine, 5, "odd");
    EXPECT_EQ(all_results(*engine)[5].text, "two") << status;
    EXPECT_EQ(server.asked("odd"), 2) << status;
  }
}

TEST(HttpTextEngine, AMissOfOneTextAmongAnswersIsItsError) {
  for (const int status : {404, 505, 307}) {
    FakeServer server([status](http::Exchange& exchange, const std::string& prompt, int) {
      if (prompt == "odd") return exchange.respond(status, {}, "not this one");
      exchange.respond(200, {}, kText);
    });
    const auto engine = engine_of(server.named());
    ask(*engine, 1, "even");
    ask(*engine, 2, "odd");
    std::map<int64_t, TextResult> results = all_results(*engine);
    EXPECT_EQ(results[1].text, "two");
    EXPECT_EQ(results[2].error,
              fmt::format("the server refuses it with status {}: not this one", status));
    EXPECT_FALSE(results[2].error_may_pass);
    EXPECT_EQ(server.asked("odd"), 4) << status;
  }
}

TEST(HttpTextEngine, RefusedTextsThatAreLeftOfAnAnsweredRunAreErrors) {
  for (const int status : {403, 404}) {
    FakeServer server([status](http::Exchange& exchange, const std::string&, int) {
      exchange.respond(status, {}, "not these");
    });
    const auto engine = engine_of(server.named(), {.was_answered = [] { return true; }});
    for (int64_t number = 1; number <= 20; ++number)
      ask(*engine, number, fmt::format("odd {}", number));
    const std::map<int64_t, TextResult> results = all_results(*engine);
    EXPECT_EQ(results.size(), 20u) << status;
    for (const auto& [number, result] : results)
      EXPECT_EQ(result.error,
                fmt::format("the server refuses it with status {}: not these", status));
  }
}

TEST(HttpTextEngine, ManyRefusalsWithoutAnAnswerEndAnAnsweredRun) {
  FakeServer server([](http::Exchange& exchange, const std::string&, int) {
    exchange.respond(403, {}, "the account is closed");
  });
  const auto engine = engine_of(server.named(), {.was_answered = [] { return true; }});
  for (int64_t number = 1; number <= 400; ++number)
    ask(*engine, number, fmt::format("text {}", number));
  EXPECT_THROW(all_results(*engine), ConfigError);
  EXPECT_EQ(server.asked("text 400"), 0);
}

TEST(HttpTextEngine, AnAccountWithoutCreditEndsTheRunAtOnce) {
  for (const bool is_in_body : {false, true}) {
    const char* const words =
        R"({"error":{"message":"You exceeded your quota","code":"insufficient_quota"}})";
    FakeServer server([=](http::Exchange& exchange, const std::string& prompt, int) {
      if (prompt == "poor") return exchange.respond(is_in_body ? 200 : 429, {}, words);
      exchange.respond(200, {}, kText);
    });
    const auto engine = engine_of(server.named(), {.requests = 1});
    ask(*engine, 1, "rich");
    ask(*engine, 2, "poor");
    ask(*engine, 3, "late");
    int texts = 0;
    try {
      while (engine->unfinished() > 0) texts += static_cast<int>(engine->step().size());
      FAIL();
    } catch (const ConfigError& error) {
      EXPECT_NE(error.sentence().find(": You exceeded your quota"), std::string::npos)
          << error.sentence();
      EXPECT_NE(error.location().hint.find("add credit, then run the same command again"),
                std::string::npos);
    }
    EXPECT_EQ(texts, 1);
    EXPECT_EQ(server.asked("poor"), 1);
    EXPECT_EQ(server.asked("late"), 0);
  }
}

TEST(HttpTextEngine, ARefusedTextIsAskedForOnceAndQuoted) {
  for (const int status : {400, 403, 413, 422}) {
    FakeServer server([status](http::Exchange& exchange, const std::string& prompt, int) {
      if (prompt == "odd")
        return exchange.respond(status, {}, R"({"error":{"message":"flagged"}})");
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      exchange.respond(200, {}, kText);
    });
    const auto engine = engine_of(server.named());
    ask(*engine, 1, "odd");
    for (int64_t number = 2; number <= 4; ++number) ask(*engine, number, "even");
    const TextResult odd = all_results(*engine)[1];
    EXPECT_EQ(odd.error, fmt::format("the server refuses it with status {}: flagged", status));
    EXPECT_FALSE(odd.error_may_pass);
    EXPECT_EQ(server.asked("odd"), 1) << status;
  }
}

TEST(HttpTextEngine, TheRunEndsAfterTheAnswersUnderWay) {
  FakeServer server([](http::Exchange& exchange, const std::string& prompt, int) {
    if (prompt != "slow") return exchange.respond(401, {}, "the key has expired");
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    exchange.respond(200, {}, kText);
  });
  const auto engine = engine_of(server.named(), {.requests = 16});
  for (int64_t number = 1; number <= 4; ++number) ask(*engine, number, "slow");
  for (int64_t number = 5; number <= 300; ++number)
    ask(*engine, number, fmt::format("late {}", number));
  int texts = 0;
  EXPECT_NE(fatal_words(*engine, texts).find("status 401: the key has expired"), std::string::npos);
  EXPECT_EQ(texts, 4);
  EXPECT_EQ(server.asked("late 300"), 0);
}

TEST(HttpTextEngine, APaidAnswerWithoutATextIsAskedForOnceMore) {
  FakeServer server([](http::Exchange& exchange, const std::string&, int) {
    exchange.respond(200, {}, R"({"choices":[],"usage":{"completion_tokens":9}})");
  });
  const auto engine = engine_of(server.named());
  ask(*engine, 1, "text");
  const TextResult result = all_results(*engine)[1];
  EXPECT_FALSE(result.error_may_pass);
  EXPECT_NE(result.error.find(R"(holds no text of the API: {"choices":[])"), std::string::npos)
      << result.error;
  EXPECT_EQ(server.asked("text"), 2);
}

TEST(HttpTextEngine, EndsWhenNoServerAnswersForLong) {
  int port = 0;
  {
    http::Server closed("127.0.0.1", 0, {}, [](std::unique_ptr<http::Exchange>) {});
    port = closed.port();
  }
  const auto engine =
      engine_of({.addresses = {fmt::format("http://127.0.0.1:{}/v1", port)}, .model = "m"},
                {.patience = std::chrono::seconds(0)});
  ask(*engine, 1, "text");
  EXPECT_THROW(all_results(*engine), NetworkError);
}

TEST(HttpTextEngine, APromptThatIsNoTextIsAnError) {
  FakeServer server([](http::Exchange&, const std::string&, int) {});
  const auto engine = engine_of(server.named());
  ask(*engine, 1, "\xff");
  const TextResult result = all_results(*engine)[1];
  EXPECT_EQ(result.finish, TextFinish::Error);
  EXPECT_FALSE(result.error_may_pass);
}

}  // namespace
}  // namespace convoy::remote
