// SPDX-License-Identifier: Apache-2.0
#include "convoy/sweep/ssm/ssm_parameters.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "convoy/base/error.h"

namespace convoy::sweep {
namespace {

using Json = nlohmann::json;

// The words of one enumerator each, in the order of the enumerators.
struct Words {
  std::vector<const char*> of;
};
const Words& words(SsmOptimizer) {
  static const Words list{{"adam", "gd"}};
  return list;
}
const Words& words(SsmInit) {
  static const Words list{{"regular", "near_one", "double_max_A_j", "positive_diagonal"}};
  return list;
}
const Words& words(SsmSchedule) {
  static const Words list{{"none", "step", "exponential", "cosine", "adaptive"}};
  return list;
}

// The one list of keys: a visitor either reads or writes every member.
template <class Parameters, class Visitor>
void each_field(Parameters& p, Visitor&& visit) {
  visit("student_dim", p.student_dim);
  visit("teacher_rank", p.teacher_rank);
  visit("sequence_length", p.sequence_length);
  visit("num_sequences", p.num_sequences);
  visit("eps_train", p.eps_train);
  visit("input_e1", p.input_e1);
  visit("calc_loss_only_on_last_output", p.calc_loss_only_on_last_output);
  visit("alpha", p.alpha);
  visit("w", p.w);
  visit("w_that_minimizes_loss", p.w_that_minimizes_loss);
  visit("w2_that_minimizes_loss", p.w2_that_minimizes_loss);
  visit("w2_that_maximizes_loss", p.w2_that_maximizes_loss);
  visit("teacher_mean", p.teacher_mean);
  visit("teacher_sd", p.teacher_sd);
  visit("prior_sd", p.prior_sd);
  visit("sweep_seed", p.sweep_seed);
  visit("gd_lr", p.descent.lr);
  visit("gd_epochs", p.descent.epochs);
  visit("gd_init_scale", p.descent.init_scale);
  visit("gd_optimizer", p.descent.optimizer);
  visit("gd_init_type", p.descent.init);
  visit("gd_scheduler", p.descent.schedule);
  visit("step_size", p.descent.step_size);
  visit("step_gamma", p.descent.step_gamma);
  visit("exp_gamma", p.descent.exp_gamma);
  visit("cosine_eta_min", p.descent.cosine_eta_min);
}

class Reader {
 public:
  explicit Reader(const Json& object) : object_(object) {}

  template <class Value>
  void operator()(const char* key, Value& value) {
    const auto found = object_.find(key);
    if (found == object_.end()) return;
    ++read_;
    key_ = key;
    read(*found, value);
  }

  size_t read_count() const { return read_; }

 private:
  void want(bool right, const char* what, const Json& found) const {
    CONVOY_CHECK(right, ConfigError, "{}: wanted {}, found `{}`", key_, what,
                 found.dump().substr(0, 60));
  }
  void read(const Json& from, int64_t& to) {
    // 1e4 is a fine way to write a count.
    const double number = from.is_number() ? from.get<double>() : 0.5;
    want(number == std::floor(number) && std::abs(number) < 0x1p53, "a whole number", from);
    to = from.is_number_integer() ? from.get<int64_t>() : static_cast<int64_t>(number);
  }
  void read(const Json& from, double& to) {
    want(from.is_number(), "a number", from);
    to = from.get<double>();
  }
  void read(const Json& from, bool& to) {
    want(from.is_boolean(), "true or false", from);
    to = from.get<bool>();
  }
  void read(const Json& from, std::optional<double>& to) { read(from, to.emplace()); }
  void read(const Json& from, std::vector<std::vector<double>>& to) {
    want(from.is_array() && !from.empty(), "a list of numbers, or of such lists", from);
    to.clear();
    const Json sequences = from.front().is_array() ? from : Json::array({from});
    for (const Json& sequence : sequences) {
      want(sequence.is_array(), "a list of numbers, or of such lists", from);
      std::vector<double>& row = to.emplace_back();
      for (const Json& entry : sequence) read(entry, row.emplace_back());
    }
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void read(const Json& from, Enum& to) {
    const auto& known = words(to).of;
    const std::string word = from.is_string() ? from.get<std::string>() : from.dump();
    const auto found = std::find(known.begin(), known.end(), word);
    want(found != known.end(), fmt::format("one of {}", fmt::join(known, ", ")).c_str(), from);
    to = static_cast<Enum>(found - known.begin());
  }

  const Json& object_;
  const char* key_ = "";
  size_t read_ = 0;
};

class Writer {
 public:
  template <class Value>
  void operator()(const char* key, const Value& value) {
    object_[key] = json_of(value);
  }
  const Json& object() const { return object_; }

 private:
  template <class Value>
  static Json json_of(const Value& value) {
    if constexpr (std::is_enum_v<Value>)
      return words(value).of[static_cast<size_t>(value)];
    else
      return value;
  }
  static Json json_of(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

  Json object_ = Json::object();
};

void check_range(const SsmParameters& p) {
  CONVOY_CHECK(p.student_dim >= 1 && p.student_dim <= 1'000'000, ConfigError,
               "student_dim: wanted 1 to 1000000, found {}", p.student_dim);
  CONVOY_CHECK(p.teacher_rank >= 1 && p.teacher_rank <= 10'000, ConfigError,
               "teacher_rank: wanted 1 to 10000, found {}", p.teacher_rank);
  CONVOY_CHECK(p.sequence_length >= 2 && p.sequence_length <= kMaxSsmPower + 1, ConfigError,
               "sequence_length: wanted 2 to {}, found {}", kMaxSsmPower + 1, p.sequence_length);
  CONVOY_CHECK(p.num_sequences >= 1 && p.num_sequences <= 10'000, ConfigError,
               "num_sequences: wanted 1 to 10000, found {}", p.num_sequences);
  CONVOY_CHECK(p.eps_train > 0 && std::isfinite(p.eps_train), ConfigError,
               "eps_train: wanted a number above 0, found {}", p.eps_train);
  CONVOY_CHECK(!p.prior_sd || (*p.prior_sd > 0 && std::isfinite(*p.prior_sd)), ConfigError,
               "prior_sd: wanted a number above 0, found {}", p.prior_sd.value_or(0));
  CONVOY_CHECK(p.descent.epochs >= 1, ConfigError, "gd_epochs: wanted at least 1, found {}",
               p.descent.epochs);
  CONVOY_CHECK(p.descent.step_size >= 1, ConfigError, "step_size: wanted at least 1, found {}",
               p.descent.step_size);
}

void check_together(const SsmParameters& p) {
  CONVOY_CHECK(!p.input_e1 || p.num_sequences == 1, ConfigError,
               "input_e1 wants num_sequences 1, found {}", p.num_sequences);
  CONVOY_CHECK(!p.input_e1 || p.w.empty(), ConfigError, "input_e1 sets w: leave out one of them");
  CONVOY_CHECK(!p.alpha || p.teacher_rank == 1, ConfigError,
               "alpha is a teacher of rank 1, found teacher_rank {}", p.teacher_rank);
  CONVOY_CHECK(p.w.empty() || std::ssize(p.w) == p.num_sequences, ConfigError,
               "w: wanted {} sequence(s), as num_sequences, found {}", p.num_sequences, p.w.size());
  for (const auto& row : p.w)
    CONVOY_CHECK(std::ssize(row) == p.sequence_length - 1, ConfigError,
                 "w: wanted {} entries, sequence_length less 1, found {}", p.sequence_length - 1,
                 row.size());
  const bool second = p.w2_that_minimizes_loss || p.w2_that_maximizes_loss;
  CONVOY_CHECK(p.w_that_minimizes_loss + p.w2_that_minimizes_loss + p.w2_that_maximizes_loss <= 1,
               ConfigError,
               "only one of w_that_minimizes_loss, w2_that_minimizes_loss and "
               "w2_that_maximizes_loss can be set");
  CONVOY_CHECK(!second || p.num_sequences == 2, ConfigError,
               "w2_that_...: wanted num_sequences 2, found {}", p.num_sequences);
  CONVOY_CHECK(
      !(second || p.w_that_minimizes_loss) || (p.teacher_rank == 1 && p.sequence_length >= 3),
      ConfigError,
      "a w that minimizes or maximizes the loss wants teacher_rank 1 and "
      "sequence_length 3 or more");
}

}  // namespace

SsmParameters SsmParameters::parse(const std::string& json) {
  const Json object = Json::parse(json, nullptr, false);
  CONVOY_CHECK(object.is_object(), ConfigError, "wanted parameters as a JSON object, found `{}`",
               json.substr(0, 80));
  SsmParameters parameters;
  Reader reader(object);
  each_field(parameters, reader);
  if (reader.read_count() != object.size()) {
    Writer known;
    each_field(parameters, known);
    for (const auto& [key, value] : object.items())
      CONVOY_CHECK(known.object().contains(key), ConfigError, "ssm has no parameter `{}`", key);
  }
  check_range(parameters);
  check_together(parameters);
  return parameters;
}

std::string SsmParameters::json() const {
  Writer mine, defaults;
  each_field(*this, mine);
  const SsmParameters plain;
  each_field(plain, defaults);
  Json changed = Json::object();
  for (const auto& [key, value] : mine.object().items())
    if (value != defaults.object()[key]) changed[key] = value;
  return changed.dump();
}

}  // namespace convoy::sweep
