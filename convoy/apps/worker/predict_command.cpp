// SPDX-License-Identifier: Apache-2.0
//
// `convoy bench predict` inside the worker.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "convoy/apps/recipes/bench/bench_predict.h"
#include "convoy/apps/worker/worker_command.h"
#include "convoy/core/base/counted.h"
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

// Prints shapes as "4096 x 3584 x 18944": rows, elements of each sum, columns.
void print_products(const Json& result) {
  std::cout << fmt::format("{:<34}{:>26}{:>7}{:>11}{:>11}\n", "product", "shape", "calls", "TFLOP",
                           "GPU ms");
  for (const Json& product : result.at("products")) {
    const int64_t batch = product.at("batch").get<int64_t>();
    const std::string shape = fmt::format(
        "{}{} x {} x {}", batch > 1 ? fmt::format("{}: ", batch) : "", product.at("rows").dump(),
        product.at("inner").dump(), product.at("columns").dump());
    std::cout << fmt::format("{:<34}{:>26}{:>7}{:>11.3f}{:>11.3f}\n",
                             product.at("op").get<std::string>(), shape,
                             product.at("calls").get<int64_t>(), number(product, "flops") / 1e12,
                             number(product, "device_ms"));
  }
}

void print_line(const std::string& name, const std::string& text) {
  std::cout << fmt::format("{:<22}{}\n", name, text);
}

std::string megabytes(const Json& result, const char* bytes) {
  return fmt::format("{:.1f} MB", number(result, bytes) / 1e6);
}

void print_bytes(const Json& result) {
  if (result.at("step") == "train") {
    print_line("weights", megabytes(result, "weight_bytes"));
    print_line("states", megabytes(result, "state_bytes"));
    print_line("other tensors", megabytes(result, "other_bytes"));
    print_line("memory", fmt::format("{:.2f} GiB of tensors at a time, planned {:.2f} of {:.2f}",
                                     std::ldexp(number(result, "peak_memory_bytes"), -30),
                                     std::ldexp(number(result, "planned_memory_bytes"), -30),
                                     std::ldexp(number(result, "device_memory_bytes"), -30)));
    return;
  }
  const auto moved = [&](const char* bytes, const char* least) {
    return fmt::format("{}, at least {:.1f}", megabytes(result, bytes),
                       number(result, least) / 1e6);
  };
  print_line("weights", moved("weight_bytes", "least_weight_bytes"));
  print_line("keys and values", moved("kv_bytes", "least_kv_bytes"));
  print_line("other tensors", megabytes(result, "other_bytes"));
}

void print_links(const Json& result) {
  if (!result.contains("collectives")) return;
  for (const Json& each : result.at("collectives"))
    print_line(each.at("op").get<std::string>(),
               fmt::format("{} of {:.1f} MB in all, {:.3f} ms", each.at("calls").dump(),
                           number(each, "link_bytes") / 1e6, number(each, "link_ms")));
  print_line("not hidden", fmt::format("{:.3f} ms of {:.3f}", number(result, "exposed_ms"),
                                       number(result, "link_ms")));
}

void print_totals(const Json& result) {
  print_line("launches", result.at("launches").dump());
  print_line("uploads, downloads",
             fmt::format("{}, {}", result.at("uploads").dump(), result.at("downloads").dump()));
  print_line("waits of the host", result.at("host_waits").dump());
  print_bytes(result);
  print_links(result);
  const bool is_graph = result.at("cuda_graph").get<bool>();
  print_line("host",
             fmt::format("{:.3f} ms{}", number(result, "host_ms"),
                         is_graph ? " launch by launch; next to none as a CUDA graph" : ""));
  print_line("GPU", fmt::format("{:.3f} ms", number(result, "device_ms")));
  print_line("predicted", fmt::format("{:.3f} ms, {:.0f} tokens/s, {:.1f} % of the peak (MFU)",
                                      number(result, "predicted_ms"),
                                      number(result, "tokens_per_s"), 100 * number(result, "mfu")));
  print_line("roofline",
             fmt::format("{:.3f} ms: the prediction reaches {:.1f} % of it",
                         number(result, "roofline_ms"), 100 * number(result, "roofline_share")));
  if (result.contains("measured_ms"))
    print_line("measured",
               fmt::format("{:.3f} ms on this machine's GPU", number(result, "measured_ms")));
}

// "decode", "training step (full, selective, int8 moments)".
std::string step_name(const Json& result) {
  if (result.at("step") != "train") return result.at("step").get<std::string>();
  const auto text = [&](const char* key) { return result.at(key).get<std::string>(); };
  std::string words = text("mode");
  if (text("recompute") == "true") words += ", recompute";
  if (text("recompute") == "selective") words += ", selective";
  if (text("attention") != "flash") words += ", " + text("attention");
  if (text("optimizer_state_dtype") != "fp32")
    words += fmt::format(", {} moments", text("optimizer_state_dtype"));
  if (text("master_weights") != "fp32") words += ", no masters";
  return fmt::format("training step ({})", words);
}

// "one H200 SXM", "each of 8 H200 SXM under zero1".
std::string place_of(const Json& result) {
  const auto gpu = result.at("assumed").at("gpu").get<std::string>();
  if (!result.contains("ranks") || result.at("ranks") == 1) return "one " + gpu;
  return fmt::format("each of {} {} under {}", result.at("ranks").dump(), gpu,
                     result.at("strategy").get<std::string>());
}

void warn_if_it_does_not_fit(const Json& result, const Log& log) {
  if (result.at("step") != "train") return;
  const double needed =
      std::max(number(result, "peak_memory_bytes"), number(result, "planned_memory_bytes"));
  if (needed <= number(result, "device_memory_bytes")) return;
  log.warning(fmt::format("this step does not fit: it needs {:.1f} GiB, and the {} has {:.1f}",
                          std::ldexp(needed, -30),
                          result.at("assumed").at("gpu").get<std::string>(),
                          std::ldexp(number(result, "device_memory_bytes"), -30)));
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
  warn_if_it_does_not_fit(result, worker.log());
  if (worker.json) {
    std::cout << result.dump() << std::endl;
    return 0;
  }
  std::cout << fmt::format("{} of {} of {} tokens, {}, on {}\n\n", step_name(result),
                           counted(result.at("rows").get<int64_t>(), "row"),
                           result.at(flags.decode ? "context" : "tokens").dump(), flags.dtype,
                           place_of(result));
  print_ops(result);
  std::cout << "\n";
  print_products(result);
  std::cout << "\n";
  print_totals(result);
  return 0;
}

}  // namespace convoy::apps
