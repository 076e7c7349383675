// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/place/master_address.h"

#include <cctype>

#include "convoy/core/base/error.h"

namespace convoy::launch {
namespace {

constexpr int kTorchrunPort = 29500;
constexpr int kMaxPort = 65535;

// A value, the source that decided it, and the sources of lower priority that differ.
class Decision {
 public:
  Decision(std::string field, const Variables& variables)
      : field_(std::move(field)), variables_(variables) {}

  // The first offer with a value decides. Later offers of another value are named as overridden.
  void offer(const std::string& value, const std::string& by) {
    if (value.empty()) return;
    if (value_.empty()) {
      value_ = value;
      by_ = by;
    } else if (value != value_) {
      overrode_ += fmt::format("{}{}={}", overrode_.empty() ? "" : ", ", by, value);
    }
  }
  void offer(std::string_view variable) { offer(variables_.text(variable), std::string(variable)); }

  const std::string& value() const { return value_; }
  const std::string& by() const { return by_; }
  Origin origin() const { return {field_, value_, by_, overrode_}; }

 private:
  std::string field_;
  const Variables& variables_;
  std::string value_, by_, overrode_;
};

bool variables_of_torchrun_taken(const ResolvedPlace& place) {
  // torchrun's store listens at MASTER_ADDR:MASTER_PORT. Ranks connect to it, but another launcher
  // cannot listen there.
  return place.kind == PlaceKind::Node && place.source == "torchrun";
}

void resolve_port(const Variables& variables, const ResolveOptions& options, ResolvedPlace& place) {
  Decision port("master_port", variables);
  if (options.master_port > 0) port.offer(std::to_string(options.master_port), "--master-port");
  if (!variables_of_torchrun_taken(place)) port.offer("MASTER_PORT");
  port.offer("PET_MASTER_PORT");
  if (port.value().empty() && port_of_job(place.job_id) > 0)
    port.offer(std::to_string(port_of_job(place.job_id)),
               fmt::format("15000 + last digits of job {}", place.job_id));
  port.offer(port.value().empty() ? std::to_string(kTorchrunPort) : "", "default");
  const std::string& text = port.value();
  const bool digits = text.find_first_not_of("0123456789") == std::string::npos && text.size() < 6;
  place.master_port = digits ? std::stoi(text) : 0;
  if (place.master_port < 1 || place.master_port > kMaxPort)
    throw ConfigError(
        fmt::format("wanted a port from 1 to {} in {}, found `{}`", kMaxPort, port.by(), text),
        {.hint = "give --master-port PORT"});
  place.origins.push_back(port.origin());
}

}  // namespace

int port_of_job(const std::string& job_id) {
  constexpr int kFirstPort = 15000;  // Lightning's rule
  std::string digits;
  for (const char letter : job_id.substr(0, job_id.find('@')))
    if (std::isdigit(static_cast<unsigned char>(letter))) digits += letter;
  if (digits.empty()) return 0;
  return kFirstPort + std::stoi(digits.size() > 4 ? digits.substr(digits.size() - 4) : digits);
}

void resolve_master(const Variables& variables, const ResolveOptions& options,
                    const HostOfRankZero& zero, ResolvedPlace& place) {
  const bool one_node = place.num_nodes == 1;
  // The launcher of a single node binds loopback, at a port of its own choice.
  if (place.kind == PlaceKind::Node && one_node) return;
  Decision address("master_addr", variables);
  address.offer(options.master_addr, "--master-addr");
  if (!variables_of_torchrun_taken(place)) address.offer("MASTER_ADDR");
  address.offer("PET_MASTER_ADDR");
  if (one_node)
    address.offer(address.value().empty() ? "127.0.0.1" : "", "all ranks are on this node");
  else
    address.offer(zero.host, "first host of " + zero.variable);
  if (address.value().empty())
    throw ConfigError(
        fmt::format("{} puts {} on several nodes but gives no address of rank 0", place.source,
                    place.kind == PlaceKind::Node ? "launchers" : "ranks"),
        {.hint = "give --master-addr HOST, or pass the variable MASTER_ADDR on to all nodes"});
  place.master_addr = address.value();
  place.origins.push_back(address.origin());
  resolve_port(variables, options, place);
}

}  // namespace convoy::launch
