// SPDX-License-Identifier: Apache-2.0
//
// Tests the parts of the front that need no engine; tests/serve/engines_test.py tests the whole.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "convoy/apps/serving/engine_choice.h"
#include "convoy/apps/serving/frames.h"
#include "convoy/apps/serving/front_link.h"
#include "convoy/apps/serving/json_answer.h"
#include "convoy/apps/serving/metrics_text.h"
#include "convoy/core/base/descriptor.h"

namespace convoy::serving {
namespace {

std::string words(char letter) { return std::string(1000, letter); }

TEST(Frames, ComeWholeHoweverTheirBytesAreCut) {
  std::string bytes;
  append_frame(bytes, FrameKind::Whole, 7, std::string("a\0b", 3));
  append_frame(bytes, FrameKind::End, 7);
  append_frame(bytes, FrameKind::Part, UINT64_MAX, words('p'));
  for (const size_t cut : {size_t{1}, size_t{12}, size_t{14}, bytes.size()}) {
    FrameReader reader;
    std::vector<Frame> frames;
    for (size_t begin = 0; begin < bytes.size(); begin += cut) {
      reader.add(std::string_view(bytes).substr(begin, cut));
      while (std::optional<Frame> frame = reader.next()) frames.push_back(std::move(*frame));
    }
    ASSERT_EQ(frames.size(), 3) << cut;
    EXPECT_EQ(frames[0].payload, std::string("a\0b", 3));
    EXPECT_EQ(frames[1].kind, FrameKind::End);
    EXPECT_EQ(frames[2].exchange, UINT64_MAX);
    EXPECT_EQ(frames[2].payload, words('p'));
  }
}

TEST(Frames, AHeadReadsBackWithItsBody) {
  const std::string payload = head_text(429, {{"retry-after", "1"}, {"a", "b:c"}}) + "x\n\ny";
  const HeadAndBody head = read_head(payload);
  EXPECT_EQ(head.status, 429);
  EXPECT_EQ(head.headers, (http::Headers{{"retry-after", "1"}, {"a", "b:c"}}));
  EXPECT_EQ(head.body, "x\n\ny");
}

PromptPrefixes prefixes_of(const std::string& prompt) {
  return prompt_prefixes(R"({"model":"m","prompt":")" + prompt + "\"}");
}

TEST(EngineChoice, TakesTheLeastBusyEngineThatIsReady) {
  EngineChoice choice(3);
  EXPECT_EQ(choice.choose({std::nullopt, std::nullopt, std::nullopt}, {}), std::nullopt);
  EXPECT_EQ(choice.choose({std::nullopt, 5, 4}, {}), 2u);
  EXPECT_EQ(choice.choose({3, 5, 4}, {}), 0u);
}

TEST(EngineChoice, TakesTheEngineThatSawTheBeginning) {
  EngineChoice choice(2);
  const std::string lesson = words('a');
  EXPECT_EQ(choice.choose({1, 0}, prefixes_of(lesson + "first")), 1u);
  EXPECT_EQ(choice.choose({0, 1}, prefixes_of(lesson + "second")), 1u);
  EXPECT_EQ(choice.choose({0, 1}, prefixes_of(words('b'))), 0u);
  EXPECT_EQ(choice.choose({0, 1}, prefixes_of(lesson + words('c') + words('d'))), 0u)
      << "only a third of it";
  EXPECT_EQ(choice.choose({0, 50}, prefixes_of(words('a'))), 0u) << "it is much busier";
}

TEST(EngineChoice, AnEngineWithoutItsCacheIsAsGoodAsAnyOther) {
  EngineChoice choice(2);
  EXPECT_EQ(choice.choose({1, 0}, prefixes_of(words('a'))), 1u);
  choice.forget(1);
  EXPECT_EQ(choice.choose({0, 1}, prefixes_of(words('a'))), 0u);
}

TEST(PromptPrefixes, AreOfModelAndPromptAlone) {
  const PromptPrefixes one = prefixes_of(words('a'));
  ASSERT_FALSE(one.empty());
  EXPECT_EQ(one, prompt_prefixes(R"({"temperature": 1, "prompt": ")" + words('a') +
                                 R"(", "model": "m"})"));
  EXPECT_NE(one.front(),
            prompt_prefixes(R"({"model":"n","prompt":")" + words('a') + "\"}").front());
  EXPECT_TRUE(prompt_prefixes("{").empty());
}

TEST(ApiError, ShowsNoMoreThanTheBeginningOfWhatWasSent) {
  const Json body = ApiError(404, std::string(5'000'000, 'm'), std::string(5'000'000, 'p')).body();
  EXPECT_LT(dumped(body).size(), 3000u);
  EXPECT_EQ(body["error"]["param"], std::string(1000, 'p') + "...");
}

TEST(Metrics, OfAllEnginesStandUnderOneHead) {
  const std::string of_first =
      "# HELP a Rows.\n# TYPE a gauge\na{engine=\"0\"} 1\n"
      "# HELP b Texts.\n# TYPE b counter\nb{engine=\"0\"} 2\n";
  const std::string of_second = "# HELP a Rows.\n# TYPE a gauge\na{engine=\"1\"} 3\n";
  EXPECT_EQ(merged_metrics({of_first, of_second}),
            "# HELP a Rows.\n# TYPE a gauge\na{engine=\"0\"} 1\na{engine=\"1\"} 3\n"
            "# HELP b Texts.\n# TYPE b counter\nb{engine=\"0\"} 2\n");
}

struct Line {
  Line() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) std::abort();
    front = Descriptor(ends[0]);
    engine = Descriptor(ends[1]);
  }
  void tell(FrameKind kind, uint64_t exchange, std::string_view payload = {}) const {
    std::string bytes;
    append_frame(bytes, kind, exchange, payload);
    EXPECT_EQ(::send(front.get(), bytes.data(), bytes.size(), 0), std::ssize(bytes));
  }
  // Returns all frames except Alive, whose number depends on time.
  std::vector<Frame> heard() {
    FrameReader reader;
    read_into(front.get(), reader);
    std::vector<Frame> frames;
    while (std::optional<Frame> frame = reader.next()) {
      is_alive = is_alive || frame->kind == FrameKind::Alive;
      if (frame->kind != FrameKind::Alive) frames.push_back(std::move(*frame));
    }
    return frames;
  }
  bool is_alive = false;  // an Alive frame was received
  Descriptor front, engine;
};

TEST(FrontLink, GivesSignsOfLifeWhileNothingIsAnswered) {
  Line line;
  FrontLink link(line.engine.get());
  while (!line.is_alive) {  // CTest's time limit ends a failure
    link.send_answers();
    EXPECT_TRUE(line.heard().empty());
  }
}

TEST(FrontLink, PassesRequestsInAndAnswersOut) {
  Line line;
  FrontLink link(line.engine.get());
  line.tell(FrameKind::Request, 4, "/v1/completions\n{\"a\":\"\\n\"}");
  std::deque<ExchangePtr> exchanges = link.passed_on(std::chrono::seconds(10));
  ASSERT_EQ(exchanges.size(), 1);
  EXPECT_TRUE(link.has_requests());
  EXPECT_EQ(exchanges[0]->path(), "/v1/completions");
  EXPECT_EQ(exchanges[0]->body(), "{\"a\":\"\\n\"}");
  exchanges[0]->respond(200, {}, "text");
  exchanges.clear();
  EXPECT_FALSE(link.has_requests());
  link.send_answers();
  const std::vector<Frame> frames = line.heard();
  ASSERT_EQ(frames.size(), 2);
  EXPECT_EQ(frames[0].kind, FrameKind::Whole);
  EXPECT_EQ(read_head(frames[0].payload).body, "text");
  EXPECT_EQ(frames[1].kind, FrameKind::End);
}

TEST(FrontLink, SaysWhenAClientOrTheFrontIsGone) {
  Line line;
  FrontLink link(line.engine.get());
  line.tell(FrameKind::Request, 4, "/a\n");
  std::deque<ExchangePtr> exchanges = link.passed_on(std::chrono::seconds(10));
  ASSERT_EQ(exchanges.size(), 1);
  EXPECT_TRUE(exchanges[0]->is_open());
  line.tell(FrameKind::Gone, 4);
  line.tell(FrameKind::Request, 5, "/b\n");
  EXPECT_EQ(link.passed_on(std::chrono::seconds(10)).size(), 1);  // was read after Gone
  EXPECT_FALSE(exchanges[0]->is_open());
  line.front.reset();
  link.passed_on(std::chrono::seconds(10));
  EXPECT_TRUE(link.is_lost());
}

}  // namespace
}  // namespace convoy::serving
