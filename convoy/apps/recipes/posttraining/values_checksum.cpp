// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/posttraining/values_checksum.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <map>
#include <sstream>
#include <string>
#include <utility>

#include "convoy/core/base/hash.h"
#include "convoy/core/base/joined_crc.h"

namespace convoy::recipes {
namespace {

// The pieces of this rank, a line each: begin, bytes, checksum, name.
std::string own_pieces(const parallel::Strategy& strategy) {
  std::string lines;
  for (const parallel::ParameterShard& shard : strategy.shards()) {
    const at::Tensor value = shard.value.detach().cpu().contiguous();
    const uint32_t checksum =
        crc32c({static_cast<const char*>(value.const_data_ptr()), value.nbytes()});
    lines += fmt::format("{} {} {} {}\n", shard.begin, value.nbytes(), checksum, shard.name);
  }
  return lines;
}

struct Piece {
  uint64_t bytes = 0;
  uint32_t checksum = 0;
};

}  // namespace

uint32_t values_checksum(parallel::Strategy& strategy) {
  // By name and beginning. Several ranks may hold the same piece.
  std::map<std::pair<std::string, int64_t>, Piece> pieces;
  for (const std::string& lines : strategy.group().all_gather_bytes(own_pieces(strategy))) {
    std::istringstream stream(lines);
    int64_t begin = 0;
    Piece piece;
    for (std::string name; stream >> begin >> piece.bytes >> piece.checksum;) {
      stream.get();
      std::getline(stream, name);
      pieces[{name, begin}] = piece;
    }
  }
  uint32_t checksum = 0;
  for (const auto& [place, piece] : pieces)
    checksum = joined_crc32c(checksum, piece.checksum, piece.bytes);
  return checksum;
}

}  // namespace convoy::recipes
