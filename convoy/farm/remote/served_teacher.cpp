// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/remote/served_teacher.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <set>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/trimmed.h"
#include "convoy/farm/remote/http_text_engine.h"

namespace convoy::remote {
namespace {

constexpr const char* kEngineKey = "distill.engine";
constexpr const char* kTeacherKey = "distill.teacher";
constexpr int64_t kRequests = 128;     // in flight; each makes the server compute a whole text
constexpr int64_t kTokensOfLook = 64;  // tokens of the question over the vocabulary
// The least share that fp32 probabilities can leave of 1 and still show: 2^-23.
constexpr double kRounding = 1.1920928955078125e-07;
constexpr std::string_view kNoLetter = "\xef\xbf\xbd";  // U+FFFD: a part of a character

constexpr double kNoise = 1e-3;  // that rounding may leave above a probability of 1

// Errors of servers name flags that a training does not have.
std::string with_keys_of_distill(std::string text) {
  for (const auto& [flag, key] : std::initializer_list<std::pair<std::string_view, const char*>>{
           {"--engine-timeout", "distill.engine_timeout"},
           {"--engine-model", "distill.teacher"},
           {"--engine", kEngineKey}})
    for (size_t at = text.find(flag); at != text.npos; at = text.find(flag, at))
      text.replace(at, flag.size(), key);
  return text;
}

template <class Body>
auto in_words_of_distill(const Body& body) {
  try {
    return body();
  } catch (const ConfigError& error) {
    throw ConfigError(
        fmt::format("the teacher's server: {}", with_keys_of_distill(error.what())),
        {.key = kEngineKey,
         .hint = "check the address, which mostly ends in /v1, distill.teacher, its name there, "
                 "distill.top_k (vLLM gives 20 tokens at most without --max-logprobs), and the key "
                 "in CONVOY_ENGINE_KEY"});
  } catch (const NetworkError& error) {
    throw NetworkError(
        fmt::format("the teacher's server: {}", with_keys_of_distill(error.what())),
        {.key = kEngineKey,
         .hint = "start it, or check address and network; the same command goes on"});
  }
}

// Decoders differ in the space before a first word, and show parts of characters in their own ways.
bool are_spelled_alike(std::string_view left, std::string_view right) {
  left = trimmed(left, " \t\r\n");
  right = trimmed(right, " \t\r\n");
  const auto is_clear = [](std::string_view text) {
    return !text.empty() && text.find(kNoLetter) == text.npos;
  };
  return left == right || !is_clear(left) || !is_clear(right);
}

// The share of all other tokens, where `listed` sums up the likeliest ones. `said`: the share of
// the text's own token if it is among the others, else 0. `most`: no other token is likelier than
// the last one listed.
double share_of_others(double listed, double said, double most) {
  return std::max(std::min(std::max(1 - listed, kRounding), most), said);
}

// Says why these are not the likeliest tokens of a distribution over `vocab_size` of them, each
// once; empty: they may be.
std::string fault_of(const std::vector<process::LikelyToken>& place, int64_t vocab_size) {
  std::set<int32_t> ids;
  double sum = 0;
  double most = 0;
  for (const process::LikelyToken& token : place) {
    if (std::isnan(token.logprob))
      return fmt::format("no number as the log-probability of token {}", token.id);
    if (!std::isfinite(token.logprob) || token.logprob > kNoise)
      return fmt::format(
          "{:g} as the log-probability of token {}: wanted a finite number of 0 or "
          "less",
          token.logprob, token.id);
    if (!ids.insert(token.id).second) return fmt::format("token {} twice", token.id);
    const double share = std::exp(static_cast<double>(token.logprob));
    sum += share;
    most = std::max(most, share);
  }
  if (sum > 1 + kNoise) return fmt::format("tokens whose probabilities add up to {:g}", sum);
  // A server whose head has more rows may say a little less.
  if (most * static_cast<double>(vocab_size) < 0.25)
    return fmt::format("{:g} as the probability of the likeliest token of {}", most, vocab_size);
  return "";
}

}  // namespace

Servers teacher_servers(const settings::DistillSettings& settings) {
  return in_words_of_distill([&] {
    return read_servers({.engine = settings.engine,
                         .engine_model = settings.teacher,
                         .engine_timeout = settings.engine_timeout},
                        {});
  });
}

ServedTeacher::ServedTeacher(const settings::DistillSettings& settings, OwnTokens tokens, Log log)
    : settings_(settings),
      own_(std::move(tokens)),
      log_(std::move(log)),
      servers_(teacher_servers(settings)),
      is_compared_(own_.texts.size()) {
  if (settings_.top_k >= own_.vocab_size)
    throw ConfigError(fmt::format("distill.top_k is {}, and there are {} tokens", settings_.top_k,
                                  own_.vocab_size),
                      {.key = "distill.top_k", .hint = "lower it, or name the teacher's folder"});
  in_words_of_distill([&] {
    http::Client client(curl_, servers_.limits());
    look_at_servers(servers_, client, log_);
  });
  engine_ = make_http_text_engine(
      curl_, servers_,
      {.requests = kRequests,
       .warn = [this](const std::string& what) { log_.warning(with_keys_of_distill(what)); }},
      log_);
  ask_over_vocabulary();
  log_.info(fmt::format("teacher: {} at {}, its {} likeliest tokens of each token",
                        settings_.teacher, fmt::join(servers_.addresses, ", "), settings_.top_k));
}

ServedTeacher::~ServedTeacher() = default;

void ServedTeacher::refuse(const std::string& why, const std::string& hint) const {
  throw ConfigError(
      fmt::format("{} of {} {}", settings_.teacher, fmt::join(servers_.addresses, ", "), why),
      {.key = kTeacherKey, .hint = hint});
}

// A prompt of tokens from all over the vocabulary: a teacher of other tokens spells some in another
// way, or does not have the last one.
void ServedTeacher::ask_over_vocabulary() {
  const int64_t last = std::ssize(own_.texts) - 1;
  TaughtText text{.place = "a first question"};
  for (int64_t number = 0; number < kTokensOfLook; ++number)
    text.ids.push_back(static_cast<int32_t>(last * number / (kTokensOfLook - 1)));
  ask({&text, 1}, {}, [](size_t, const TaughtTokens&) {});
}

void ServedTeacher::ask(std::span<const TaughtText> texts,
                        const std::function<bool()>& stop_requested, const Take& take) {
  for (size_t text = 0; text < texts.size(); ++text)
    engine_->submit({.number = static_cast<int64_t>(text),
                     .prompt = {.ids = texts[text].ids},
                     // Some servers refuse an answer of no token.
                     .sampling = {.temperature = 0, .max_new_tokens = 1},
                     .prompt_likeliest = settings_.top_k});
  try {
    while (engine_->unfinished() > 0) {
      if (stop_requested && stop_requested())
        throw StopRequest("stopped while the teacher was asked; its answers are kept");
      for (const process::TextResult& answer :
           in_words_of_distill([this] { return engine_->step(); })) {
        const auto text = static_cast<size_t>(answer.number);
        take(text, tokens_of(texts[text], answer));
      }
    }
  } catch (...) {
    for (size_t text = 0; text < texts.size(); ++text) engine_->cancel(static_cast<int64_t>(text));
    throw;
  }
}

TaughtTokens ServedTeacher::tokens_of(const TaughtText& text, const process::TextResult& answer) {
  if (answer.finish == process::TextFinish::Error) {
    const std::string what =
        fmt::format("the teacher at {}: {}", text.place, with_keys_of_distill(answer.error));
    if (answer.error_may_pass)
      throw NetworkError(
          what, {.key = kEngineKey, .hint = "look at the server, then run the same command again"});
    throw DataError(what, {.key = kEngineKey,
                           .hint = "give the server room for whole texts, or lower "
                                   "rollout.max_new_tokens"});
  }
  if (answer.prompt_likeliest.empty())
    refuse("gives no prompt_logprobs in completions",
           "serve it by `convoy serve` or vLLM, or name its folder without distill.engine");
  if (answer.prompt_likeliest.size() != text.ids.size())
    refuse(fmt::format("gives log-probabilities of {} tokens of a text of {}",
                       answer.prompt_likeliest.size(), text.ids.size()),
           "the server must read token ids as they are sent: take `convoy serve` or vLLM");
  TaughtTokens tokens;
  for (auto at = static_cast<size_t>(text.first); at < text.ids.size(); ++at)
    add_place(text, at, answer.prompt_likeliest[at], tokens);
  return tokens;
}

void ServedTeacher::refuse_place(const TaughtText& text, size_t at, const std::string& why,
                                 const std::string& hint) const {
  throw DataError(
      fmt::format("{} of {} gives at {}, token {} of {}, {}", settings_.teacher,
                  fmt::join(servers_.addresses, ", "), text.place, at, text.ids.size(), why),
      {.key = kEngineKey, .hint = hint});
}

void ServedTeacher::add_place(const TaughtText& text, size_t at,
                              std::vector<process::LikelyToken> place, TaughtTokens& tokens) {
  const auto top_k = static_cast<size_t>(settings_.top_k);
  const int32_t said = text.ids[at];
  if (place.empty())
    refuse_place(text, at, "no tokens, where the first token of a prompt alone has none",
                 "the server must compute every token of a prompt, without a prefix cache, as "
                 "`convoy serve` and vLLM do");
  for (const process::LikelyToken& token : place) require_own(token);
  if (const std::string fault = fault_of(place, own_.vocab_size); !fault.empty())
    refuse_place(text, at, fault,
                 "the server must give logarithms of probabilities at temperature 1 (vLLM: "
                 "--logprobs-mode raw_logprobs)");
  if (place.size() < top_k)
    refuse(fmt::format("gives {} tokens in a place, and distill.top_k is {}", place.size(), top_k),
           fmt::format("distill.top_k={}, or raise the server's own limit", place.size()));
  std::sort(place.begin(), place.end(),
            [](const process::LikelyToken& left, const process::LikelyToken& right) {
              return std::pair(-left.logprob, left.id) < std::pair(-right.logprob, right.id);
            });
  double listed = 0;
  for (size_t rank = 0; rank < top_k; ++rank) {
    tokens.ids.push_back(place[rank].id);
    tokens.logprobs.push_back(place[rank].logprob);
    listed += std::exp(static_cast<double>(place[rank].logprob));
  }
  double share_of_said = 0;
  for (size_t rank = top_k; rank < place.size(); ++rank)
    if (place[rank].id == said) share_of_said = std::exp(static_cast<double>(place[rank].logprob));
  const double most = static_cast<double>(own_.vocab_size - settings_.top_k) *
                      std::exp(static_cast<double>(place[top_k - 1].logprob));
  tokens.logprobs.push_back(
      static_cast<float>(std::log(share_of_others(listed, share_of_said, most))));
}

// A model is compared with its teacher token by token, so an id must mean the same to both.
void ServedTeacher::require_own(const process::LikelyToken& token) {
  if (token.id < 0 || token.id >= own_.vocab_size)
    refuse(fmt::format("has a token {}, and the model {} of them", token.id, own_.vocab_size),
           "take a teacher of the model's own family, with its tokenizer");
  const auto at = static_cast<size_t>(token.id);
  if (at >= own_.texts.size() || is_compared_[at]) return;
  if (token.text.empty()) {
    if (!std::exchange(told_unspelled_, true) && !own_.texts[at].empty())
      log_.warning(
          "the teacher's server does not spell its tokens (decoded_token): whether they are the "
          "model's is not checked");
    return;
  }
  is_compared_[at] = true;
  if (!are_spelled_alike(token.text, own_.texts[at]))
    refuse(fmt::format("has other tokens than the model: token {} is `{}`, here `{}`", token.id,
                       servers_.quoted(token.text), own_.texts[at]),
           "take a teacher of the model's own family, with its tokenizer");
}

}  // namespace convoy::remote
