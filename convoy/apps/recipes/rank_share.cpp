// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/rank_share.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <string_view>
#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/machine/device/tensor_memory.h"

namespace convoy::recipes {
namespace {

// A slow rank is not dead, and the launcher ends a rank that died or fell silent, so waiting has no
// limit here. c10d counts milliseconds in 32 bits.
constexpr std::chrono::hours kPatience{24 * 7};

// Number of lines gathered at a time, so that memory stays bounded for any total.
constexpr int64_t kPlacesPerRound = 4096;

std::string packed(const std::vector<PlacedLine>& lines, size_t first, size_t last) {
  std::string bytes;
  for (size_t at = first; at < last; ++at)
    bytes += fmt::format("{} {}\n", lines[at].first, lines[at].second);
  return bytes;
}

void unpack(std::string_view bytes, std::vector<PlacedLine>& lines) {
  while (!bytes.empty()) {
    const size_t space = bytes.find(' ');
    const size_t end = bytes.find('\n');
    int64_t place = 0;
    CONVOY_INVARIANT(
        space < end && end != std::string_view::npos &&
            std::from_chars(bytes.data(), bytes.data() + space, place).ec == std::errc(),
        "a rank sent no line");
    lines.emplace_back(place, bytes.substr(space + 1, end - space - 1));
    bytes.remove_prefix(end + 1);
  }
}

}  // namespace

Log log_of_rank(const std::string& folder, const Log& log) {
  const bool leads = folder.empty() || comm::read_rank_environment().rank == 0;
  return leads ? log : Log(LogLevel::Quiet);
}

void gather_in_order(comm::Group& group, const std::vector<PlacedLine>& own, int64_t begin,
                     int64_t end, const std::function<void(const std::string&)>& take) {
  size_t first = 0;
  for (; begin < end; begin += kPlacesPerRound) {
    size_t last = first;
    while (last < own.size() && own[last].first < begin + kPlacesPerRound) ++last;
    const std::vector<std::string> all = group.all_gather_bytes(packed(own, first, last));
    first = last;
    if (group.rank() != 0) continue;
    std::vector<PlacedLine> lines;
    for (const std::string& bytes : all) unpack(bytes, lines);
    std::stable_sort(lines.begin(), lines.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const PlacedLine& line : lines) take(line.second);
  }
}

RankShare::RankShare(const settings::RankFlags& ranks) {
  comm::RankEnvironment environment;
  if (!ranks.ranks_folder.empty()) {
    environment = comm::read_rank_environment();
    flight_ = telemetry::FlightWriter::attach();
    counts_.emplace(std::filesystem::path(ranks.ranks_folder) / "done", environment.world);
    counts_->set(environment.rank, 0);
  }
  rank_device_ = device::take_rank_device(ranks.devices, environment.local_rank);
  device::keep_tensor_memory();
  device::share_cpu_threads(environment.local_world);
  if (rank_device_.device.is_cpu()) threads_.emplace(environment.local_world);
  group_ = comm::join_group(environment, kPatience, &flight_, rank_device_.device);
}

void RankShare::follow_free_cores(const Log& log) {
  if (!threads_) return;
  if (const std::string reduced = threads_->take(); !reduced.empty()) log.info(reduced);
}

void RankShare::say_busy_cores(const Log& log) const {
  if (!threads_) return;
  if (const std::string told = threads_->keep(); !told.empty()) log.info(told);
}

int64_t RankShare::report_done(int64_t own) {
  if (!counts_) return own;
  counts_->set(rank(), own);
  return counts_->sum();
}

void RankShare::wait_for_all(int64_t total, const std::function<void(int64_t)>& show) {
  if (size() == 1) return;
  while (counts_->sum() < total) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    show(counts_->sum());
  }
  // Every rank has done its rows by now. The barrier lets no rank go on before all have seen that.
  group_->barrier();
  show(total);
}

}  // namespace convoy::recipes
