// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/server_metrics.h"

#include <gtest/gtest.h>

namespace convoy::recipes {
namespace {

using namespace std::chrono_literals;

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST(ServerMetrics, HistogramsCountUpToEachBound) {
  Histogram histogram({0.5, 1, 20});
  for (const double value : {0.25, 0.5, 0.75, 30.0}) histogram.add(value);
  EXPECT_EQ(histogram.text("a:b", "x=\"y\""),
            "a:b_bucket{x=\"y\",le=\"0.5\"} 2\n"
            "a:b_bucket{x=\"y\",le=\"1\"} 3\n"
            "a:b_bucket{x=\"y\",le=\"20\"} 3\n"
            "a:b_bucket{x=\"y\",le=\"+Inf\"} 4\n"
            "a:b_sum{x=\"y\"} 31.5\n"
            "a:b_count{x=\"y\"} 4\n");
}

TEST(ServerMetrics, ARowIsCountedByItsCourse) {
  ServerMetrics metrics("a \"b\"\\", 3);
  const ServerMetrics::Clock::time_point start{1s};
  RowTimes row{.came = start, .prompt_tokens = 7};
  row.began = start + 2s;
  metrics.note_tokens(row, 0, start + 2s);
  metrics.note_tokens(row, 1, start + 3s);
  metrics.note_tokens(row, 1, start + 4s);
  metrics.note_tokens(row, 2, start + 5s);
  metrics.note_end(row, generate::FinishReason::Length, start + 6s);
  metrics.note_abort();
  const std::string text = metrics.text({.running = 4, .kv_use = 0.25});
  const std::string labels = R"({model_name="a \"b\"\\",engine="3"})";
  for (const auto& [name, value] :
       {std::pair("num_requests_running", "4"), std::pair("kv_cache_usage_perc", "0.25"),
        std::pair("prompt_tokens_total", "7"), std::pair("generation_tokens_total", "2"),
        std::pair("time_to_first_token_seconds_sum", "3"),
        std::pair("inter_token_latency_seconds_sum", "2"),
        std::pair("inter_token_latency_seconds_count", "1"),
        std::pair("e2e_request_latency_seconds_sum", "6"),
        std::pair("request_queue_time_seconds_sum", "2"),
        std::pair("request_prefill_time_seconds_sum", "1"),
        std::pair("request_decode_time_seconds_sum", "2"),
        std::pair("request_prompt_tokens_sum", "7"),
        std::pair("request_generation_tokens_sum", "2")})
    EXPECT_TRUE(has_line(text, std::string("vllm:") + name + labels + " " + value)) << name;
  EXPECT_TRUE(has_line(text, "# TYPE vllm:request_success_total counter"));
  for (const std::string reason : {"length", "abort"})
    EXPECT_TRUE(has_line(text, "vllm:request_success_total" + labels.substr(0, labels.size() - 1) +
                                   ",finished_reason=\"" + reason + "\"} 1"));
}

}  // namespace
}  // namespace convoy::recipes
