// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/doctor/doctor_ranks.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/json_member.h"
#include "convoy/core/base/loopback.h"

namespace convoy::monitor {
namespace {

std::string numeric(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address->sa_family == AF_INET)
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text.data(),
                text.size());
  else if (address->sa_family == AF_INET6)
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text.data(),
                text.size());
  return text.data();
}

std::string joined(const std::set<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

std::set<std::string> interface_names(const NetworkFacts& network) {
  std::set<std::string> names;
  for (const auto& [address, name] : network.interfaces) names.insert(name);
  return names;
}

std::string interface_of(const RanksFacts& facts) {
  for (const RankLocation& rank : facts.ranks)
    if (const auto found = facts.network.interfaces.find(rank.address);
        found != facts.network.interfaces.end())
      return found->second;
  return "";
}

// Gloo's message without the part that every rank of a broken group repeats.
std::string without_echo(const std::string& failure) {
  return failure.substr(0, failure.find(" (another rank ended"));
}

// An obstacle, and one remedy.
struct Cause {
  std::string text;
  std::string fix;
};

// Certain causes come before possible ones.
Cause cause_of(const RanksFacts& facts) {
  const NetworkFacts& network = facts.network;
  const std::string found =
      facts.timed_out
          ? fmt::format("ranks did not get through an all-reduce within {:.0f} s", facts.limit_s)
          : without_echo(facts.failure);
  if (facts.nodes == 1)
    return {found, facts.timed_out
                       ? "is the machine overloaded? `convoy doctor --no-ranks` checks the rest"
                       : facts.advice};
  const std::set<std::string> names = interface_names(network);
  if (!network.wanted_interface.empty() && !names.contains(network.wanted_interface))
    return {
        fmt::format("GLOO_SOCKET_IFNAME={} is no interface of this host", network.wanted_interface),
        "name one of " + joined(names)};
  if (network.master_addresses.empty() && !network.is_master)
    return {fmt::format("the rendezvous host {} is unknown here", network.master),
            "name node 0 by its address"};
  if (network.leads_back())
    return {fmt::format("the rendezvous host {} is {} here: this host itself", network.master,
                        network.master_addresses.front()),
            "name node 0 by its address, or fix /etc/hosts"};
  if (!facts.met)
    return {found, fmt::format("start the same command on every node within a minute; if it was, "
                               "let the firewall of {} pass the port",
                               network.master)};
  if (facts.elsewhere) return {found, "the cause is there: see its doctor's output"};
  return {"the nodes met, but their ranks do not reach each other: " + found,
          "let the firewall pass TCP between the hosts, on any port; or name the interface that "
          "joins them in GLOO_SOCKET_IFNAME"};
}

std::string speed_text(double bytes_per_s) {
  const double mib = bytes_per_s / (1 << 20);
  return mib >= 2048 ? fmt::format("{:.1f} GiB/s", mib / 1024)
         : mib >= 10 ? fmt::format("{:.0f} MiB/s", mib)
                     : fmt::format("{:.2g} MiB/s", mib);
}

std::string time_text(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.0f} us", seconds * 1e6)
                        : fmt::format("{:.2g} ms", seconds * 1e3);
}

std::string place_text(const RanksFacts& facts) {
  std::set<std::string> hosts;
  for (const RankLocation& rank : facts.ranks) hosts.insert(rank.host);
  const std::string ranks = counted(static_cast<int64_t>(facts.ranks.size()), "rank");
  return facts.nodes == 1 ? ranks + " of this host"
                          : fmt::format("{} on {}", ranks, fmt::join(hosts, ", "));
}

Finding judge_figures(const RanksFacts& facts) {
  const std::string interface = interface_of(facts);
  const bool names_interface = facts.check == "gloo" && !interface.empty();
  Finding finding{FindingLevel::Fine, facts.check,
                  fmt::format("{} sum one number in {}, many at {}{}", place_text(facts),
                              time_text(facts.latency_s), speed_text(facts.bytes_per_s),
                              names_interface ? " over " + interface : "")};
  // Bytes per second of a gigabit network; gradients of a GPU need more.
  constexpr double kSlowNetwork = 100.0 * (1 << 20);
  constexpr double kSlowLatency = 5e-3;
  if (facts.bytes_per_s < kSlowNetwork) {
    finding.level = FindingLevel::Warning;
    finding.fix = facts.nodes == 1
                      ? "look for other jobs that hold the CPUs: `ps -eo pid,pcpu,args "
                        "--sort=-pcpu | head`"
                      : fmt::format(
                            "is {} the fastest network between the hosts? "
                            "GLOO_SOCKET_IFNAME names another",
                            interface.empty() ? "this" : interface);
    finding.code = ExitCode::PeerLost;
  } else if (facts.latency_s > kSlowLatency) {
    finding.level = FindingLevel::Note;
    finding.text += ": late for one number, so other jobs may hold the CPUs";
  }
  return finding;
}

Finding judge_clocks(const RanksFacts& facts) {
  const auto [least, most] =
      std::minmax_element(facts.ranks.begin(), facts.ranks.end(),
                          [](const RankLocation& one, const RankLocation& other) {
                            return one.clock_s < other.clock_s;
                          });
  // Ranks leave a barrier up to latency_s apart.
  const double apart_s = std::max(most->clock_s - least->clock_s, facts.latency_s);
  constexpr double kUnequal = 1;
  if (apart_s < kUnequal)
    return {FindingLevel::Fine, "clocks",
            fmt::format("the nodes' clocks agree within {:.0f} ms", std::ceil(apart_s * 1e3))};
  return {FindingLevel::Warning, "clocks",
          fmt::format("the clock of {} is {:.1f} s behind that of {}: their logs will not match",
                      least->host, apart_s, most->host),
          "start chronyd or systemd-timesyncd on both"};
}

}  // namespace

bool NetworkFacts::leads_back() const {
  return !is_master && !master_addresses.empty() && is_loopback_address(master_addresses.front()) &&
         !is_loopback_host(master);
}

NetworkFacts read_network(const std::string& master, const std::string& wanted_interface) {
  NetworkFacts facts{.wanted_interface = wanted_interface, .master = master};
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) == 0) {
    const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
    for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
      const bool up = (one->ifa_flags & IFF_UP) != 0;
      if (one->ifa_addr == nullptr || !up) continue;
      if (const std::string address = numeric(one->ifa_addr); !address.empty())
        facts.interfaces[address] = one->ifa_name;
    }
  }
  if (master.empty()) return facts;
  addrinfo wish{};
  wish.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(master.c_str(), nullptr, &wish, &found) != 0) return facts;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next)
    facts.master_addresses.push_back(numeric(one->ai_addr));
  return facts;
}

bool read_ranks_figures(const std::filesystem::path& file, RanksFacts& facts) {
  std::error_code missing;
  if (!std::filesystem::exists(file, missing)) return false;
  const auto found = nlohmann::json::parse(read_file(file), nullptr, /*allow_exceptions=*/false);
  if (!found.is_object() || !found.contains("ranks")) return false;
  for (const auto& rank : found["ranks"])
    facts.ranks.push_back({.host = member_or(rank, "host", std::string()),
                           .address = member_or(rank, "address", std::string()),
                           .gpus = member_or(rank, "gpus", int64_t{0}),
                           .clock_s = member_or(rank, "clock_s", 0.0)});
  facts.latency_s = member_or(found, "latency_s", 0.0);
  facts.bytes_per_s = member_or(found, "bytes_per_s", 0.0);
  return !facts.ranks.empty();
}

std::vector<Finding> judge_ranks(const RanksFacts& facts) {
  if (!facts.not_checked.empty())
    return {{FindingLevel::Note, facts.check, "not checked: " + facts.not_checked}};
  if (!facts.failure.empty() || facts.timed_out) {
    const Cause cause = cause_of(facts);
    return {{FindingLevel::Blocking, facts.check, cause.text, cause.fix, ExitCode::PeerLost}};
  }
  std::vector<Finding> findings = {judge_figures(facts)};
  if (facts.nodes > 1 && facts.check == "gloo") findings.push_back(judge_clocks(facts));
  return findings;
}

}  // namespace convoy::monitor
