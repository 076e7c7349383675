// SPDX-License-Identifier: Apache-2.0
//
// `convoy bench predict` inside the worker.
#include <fmt/format.h>

#include <iostream>

#include "convoy/apps/recipes/bench/bench_predict.h"
#include "convoy/apps/worker/worker_command.h"
#include "convoy/core/base/error.h"

namespace convoy::apps {
namespace {

using Json = nlohmann::ordered_json;

double number(const Json& result, const char* key) { return result.at(key).get<double>(); }

void print_ops(const Json& result) {
  const bool is_measured = result.contains("measured_ms");
  std::cout << fmt::format("{:<34}{:>10}{:>12}{:>11}{:>8}{}\n", "op", "launches", "MB", "GPU ms",
                           "share", is_measured ? "   measured" : "");
  for (const Json& op : result.at("ops"))
    std::cout << fmt::format("{:<34}{:>10}{:>12.1f}{:>11.3f}{:>7.1f}%{}\n",
                             op.at("op").get<std::string>(), op.at("launches").get<int64_t>(),
                             number(op, "bytes") / 1e6, number(op, "device_ms"),
                             100 * number(op, "share"),
                             op.contains("measured_device_ms")
                                 ? fmt::format("{:>11.3f}", number(op, "measured_device_ms"))
                                 : "");
}

void print_totals(const Json& result) {
  const auto line = [](const std::string& name, const std::string& text) {
    std::cout << fmt::format("{:<22}{}\n", name, text);
  };
  const auto moved = [&](const char* bytes, const char* least) {
    return fmt::format("{:.1f} MB, at least {:.1f}", number(result, bytes) / 1e6,
                       number(result, least) / 1e6);
  };
  line("launches", result.at("launches").dump());
  line("uploads, downloads",
       fmt::format("{}, {}", result.at("uploads").dump(), result.at("downloads").dump()));
  line("waits of the host", result.at("host_waits").dump());
  line("weights", moved("weight_bytes", "least_weight_bytes"));
  line("keys and values", moved("kv_bytes", "least_kv_bytes"));
  line("other tensors", fmt::format("{:.1f} MB", number(result, "other_bytes") / 1e6));
  line("host", fmt::format("{:.3f} ms", number(result, "host_ms")));
  line("GPU", fmt::format("{:.3f} ms", number(result, "device_ms")));
  line("predicted", fmt::format("{:.3f} ms, {:.0f} tokens/s", number(result, "predicted_ms"),
                                number(result, "tokens_per_s")));
  line("roofline",
       fmt::format("{:.3f} ms: the prediction reaches {:.1f} % of it",
                   number(result, "roofline_ms"), 100 * number(result, "roofline_share")));
  if (result.contains("measured_ms"))
    line("measured", fmt::format("{:.3f} ms on this machine's GPU", number(result, "measured_ms")));
}

}  // namespace

int predict_command(const Arguments& arguments) {
  CommonFlags worker;
  settings::BenchPredictFlags flags;
  settings::RankFlags ranks;
  const Arguments positionals = config::parse_flags(
      {config::list_fields(flags), config::list_fields(ranks), config::list_fields(worker)},
      arguments);
  if (!positionals.empty())
    throw ConfigError(fmt::format("unexpected argument `{}`", positionals[0]),
                      {.hint = "every value has a flag"});
  const Json result = recipes::bench_predict(flags, ranks.devices);
  if (worker.json) {
    std::cout << result.dump() << std::endl;
    return 0;
  }
  const bool decodes = flags.decode;
  std::cout << fmt::format("{} of {} rows of {} tokens, {}, on one {}\n\n",
                           decodes ? "decode" : "prefill", result.at("rows").dump(),
                           result.at(decodes ? "context" : "tokens").dump(), flags.dtype,
                           result.at("assumed").at("gpu").get<std::string>());
  print_ops(result);
  std::cout << "\n";
  print_totals(result);
  return 0;
}

}  // namespace convoy::apps
