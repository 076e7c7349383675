// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/server_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace convoy::recipes {
namespace {

// The same bounds as in vLLM's histograms, because dashboards add up histograms of several servers.
const std::vector<double> kFirstTokenSeconds{0.001, 0.005, 0.01, 0.02,  0.04,  0.06,  0.08, 0.1,
                                             0.25,  0.5,   0.75, 1,     2.5,   5,     7.5,  10,
                                             20,    40,    80,   160.0, 640.0, 2560.0};
const std::vector<double> kTokenSeconds{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5,
                                        0.75, 1,     2.5,  5,     7.5, 10,   20,  40,  80};
const std::vector<double> kRequestSeconds{0.3, 0.5, 0.8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                                          30,  40,  50,  60, 120, 240, 480, 960, 1920, 7680};
const std::vector<double> kTokenCounts{1,    2,    5,    10,    20,    50,    100,    200,   500,
                                       1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000};

enum Measure : size_t {
  kFirstToken,
  kBetweenTokens,
  kPerToken,
  kWhole,
  kQueue,
  kPrefill,
  kDecode,
  kPromptTokens,
  kAnswerTokens,
  kMostAnswerTokens
};

struct MeasureKind {
  std::string_view name;
  std::string_view help;
  const std::vector<double>& bounds;
};
// Indexed by Measure.
const std::vector<MeasureKind> kMeasures{
    {"time_to_first_token_seconds", "From a request to the first token.", kFirstTokenSeconds},
    {"inter_token_latency_seconds", "From a token to the next one.", kTokenSeconds},
    {"time_per_output_token_seconds", "inter_token_latency_seconds under its older name.",
     kTokenSeconds},
    {"e2e_request_latency_seconds", "From a request to the end of its answer.", kRequestSeconds},
    {"request_queue_time_seconds", "From a request to its first step.", kRequestSeconds},
    {"request_prefill_time_seconds", "From the first step to the first token.", kRequestSeconds},
    {"request_decode_time_seconds", "From the first token to the last one.", kRequestSeconds},
    {"request_prompt_tokens", "Tokens of a prompt.", kTokenCounts},
    {"request_generation_tokens", "Tokens of an answer.", kTokenCounts},
    // vLLM counts the longest of a request's `n` answers. Here each answer counts as a request.
    {"request_max_num_generation_tokens", "request_generation_tokens again.", kTokenCounts}};

double seconds(RowTimes::Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

// The value of a label, between its quotes.
std::string escaped(std::string_view value) {
  std::string text;
  for (const char letter : value) {
    if (letter == '\n') {
      text += "\\n";
      continue;
    }
    if (letter == '"' || letter == '\\') text += '\\';
    text += letter;
  }
  return text;
}

class MetricText {
 public:
  explicit MetricText(std::string labels) : labels_(std::move(labels)) {}

  void begin(std::string_view name, std::string_view kind, std::string_view help) {
    fmt::format_to(std::back_inserter(text_), "# HELP vllm:{0} {2}\n# TYPE vllm:{0} {1}\n", name,
                   kind, help);
  }
  void line(std::string_view name, double value, std::string_view more_labels = {}) {
    fmt::format_to(std::back_inserter(text_), "vllm:{}{{{}{}}} {}\n", name, labels_, more_labels,
                   value);
  }
  void gauge(std::string_view name, double value, std::string_view help) {
    begin(name, "gauge", help);
    line(name, value);
  }
  void counter(std::string_view name, int64_t value, std::string_view help) {
    begin(name, "counter", help);
    line(name, static_cast<double>(value));
  }
  void add(const std::string& lines) { text_ += lines; }
  std::string take() { return std::move(text_); }

 private:
  std::string labels_;
  std::string text_;
};

}  // namespace

void Histogram::add(double value) {
  const auto at = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  ++counts_[static_cast<size_t>(at - bounds_.begin())];
  sum_ += value;
}

std::string Histogram::text(std::string_view name, std::string_view labels) const {
  std::string lines;
  const auto out = std::back_inserter(lines);
  int64_t count = 0;
  for (size_t at = 0; at < counts_.size(); ++at) {
    count += counts_[at];
    const std::string bound = at < bounds_.size() ? fmt::format("{}", bounds_[at]) : "+Inf";
    fmt::format_to(out, "{}_bucket{{{},le=\"{}\"}} {}\n", name, labels, bound, count);
  }
  fmt::format_to(out, "{0}_sum{{{1}}} {2}\n{0}_count{{{1}}} {3}\n", name, labels, sum_, count);
  return lines;
}

ServerMetrics::ServerMetrics(std::string model_name, int64_t engine)
    : labels_(fmt::format("model_name=\"{}\",engine=\"{}\"", escaped(model_name), engine)) {
  for (const char* reason : {"stop", "length", "abort", "error"}) ends_[reason] = 0;
  for (const MeasureKind& kind : kMeasures) histograms_.emplace_back(kind.bounds);
}

void ServerMetrics::note_tokens(RowTimes& row, int64_t tokens, Clock::time_point now) {
  if (tokens == row.tokens) return;
  if (row.tokens == 0) {
    prompt_tokens_ += row.prompt_tokens;
    row.first_token = now;
    histograms_[kFirstToken].add(seconds(now - row.came));
  } else {
    for (const Measure measure : {kBetweenTokens, kPerToken})
      histograms_[measure].add(seconds(now - row.last_token));
  }
  generation_tokens_ += tokens - row.tokens;
  row.tokens = tokens;
  row.last_token = now;
}

void ServerMetrics::note_end(const RowTimes& row, generate::FinishReason reason,
                             Clock::time_point now) {
  const bool failed =
      reason == generate::FinishReason::NotFinite || reason == generate::FinishReason::GrammarLimit;
  ++ends_[failed ? "error" : std::string(generate::finish_reason_name(reason))];
  if (failed) return;
  histograms_[kWhole].add(seconds(now - row.came));
  histograms_[kQueue].add(seconds(row.began - row.came));
  histograms_[kPrefill].add(seconds(row.first_token - row.began));
  histograms_[kDecode].add(seconds(row.last_token - row.first_token));
  histograms_[kPromptTokens].add(static_cast<double>(row.prompt_tokens));
  for (const Measure measure : {kAnswerTokens, kMostAnswerTokens})
    histograms_[measure].add(static_cast<double>(row.tokens));
}

std::string ServerMetrics::text(const scheduler::EngineFigures& figures) const {
  MetricText text(labels_);
  text.gauge("num_requests_running", static_cast<double>(figures.running),
             "Answers that are computed together.");
  text.gauge("num_requests_waiting", static_cast<double>(figures.waiting), "Answers that wait.");
  text.gauge("kv_cache_usage_perc", figures.kv_use, "Share of the KV cache in use, from 0 to 1.");
  text.gauge("gpu_cache_usage_perc", figures.kv_use,
             "kv_cache_usage_perc under its older name, also on CPUs.");
  text.counter("num_preemptions_total", figures.preemptions,
               "Answers that were put back to wait, for lack of KV cache.");
  text.counter("prompt_tokens_total", prompt_tokens_, "Tokens of prompts that were read.");
  text.counter("generation_tokens_total", generation_tokens_, "Tokens of answers.");
  text.counter("prefix_cache_queries_total", figures.sought_prompt_tokens,
               "Tokens of prompts that were looked for in the prefix cache.");
  text.counter("prefix_cache_hits_total", figures.cached_prompt_tokens,
               "Tokens of prompts that the prefix cache had.");
  text.begin("request_success_total", "counter", "Answers by the reason of their end.");
  for (const auto& [reason, count] : ends_)
    text.line("request_success_total", static_cast<double>(count),
              fmt::format(",finished_reason=\"{}\"", reason));
  for (size_t measure = 0; measure < kMeasures.size(); ++measure) {
    const MeasureKind& kind = kMeasures[measure];
    text.begin(kind.name, "histogram", kind.help);
    text.add(histograms_[measure].text(fmt::format("vllm:{}", kind.name), labels_));
  }
  return text.take();
}

}  // namespace convoy::recipes
