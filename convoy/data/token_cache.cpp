// SPDX-License-Identifier: Apache-2.0
//
// File: Header, then pieces each padded to 8 bytes: JSON (key, report, policy, content hash), offsets int64[rows + 1],
// source indices int64[rows], supervised counts int64[rows], ids int32[tokens], mask uint8[tokens]. Little-endian hosts.
#include "convoy/data/token_cache.h"

#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <utility>

#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/base/hash.h"
#include "convoy/data/dataset_buffer.h"

namespace convoy::data {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::array<char, 8> kMagic = {'C', 'V', 'Y', 'T', 'O', 'K', 'N', '1'};

struct Header {
  std::array<char, 8> magic = kMagic;
  uint32_t crc = 0;  // CRC32C of everything behind this member
  uint32_t zero = 0;
  int64_t json_bytes = 0;
  int64_t num_rows = 0;
  int64_t num_tokens = 0;
};
constexpr size_t kCheckedFrom = offsetof(Header, zero);

size_t padded(size_t bytes) { return (bytes + 7) / 8 * 8; }

std::optional<std::filesystem::path> folder_of(const std::string& setting) {
  if (setting == "none") return std::nullopt;
  if (!setting.empty()) return setting;
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::filesystem::path(value == nullptr ? "" : value);
  };
  if (const auto cache = variable("XDG_CACHE_HOME"); cache.is_absolute())
    return cache / "convoy" / "tokens";
  if (const auto home = variable("HOME"); home.is_absolute())
    return home / ".cache" / "convoy" / "tokens";
  return std::nullopt;
}

nlohmann::json report_to_json(const SplitReport& report) {
  return {{"name", report.name},
          {"schema", report.schema},
          {"rows_read", report.rows_read},
          {"rows_unreadable", report.rows_unreadable},
          {"rows_unsupervised", report.rows_unsupervised},
          {"rows_truncated", report.rows_truncated},
          {"rows_dropped_long", report.rows_dropped_long},
          {"fields_cut", report.fields_cut},
          {"rows_own_bos", report.rows_own_bos},
          {"tokens", report.tokens},
          {"supervised_tokens", report.supervised_tokens},
          {"unreadable", report.unreadable},
          {"content_hash", report.content_hash}};
}

SplitReport report_from_json(const nlohmann::json& json) {
  SplitReport report;
  json.at("name").get_to(report.name);
  json.at("schema").get_to(report.schema);
  json.at("rows_read").get_to(report.rows_read);
  json.at("rows_unreadable").get_to(report.rows_unreadable);
  json.at("rows_unsupervised").get_to(report.rows_unsupervised);
  json.at("rows_truncated").get_to(report.rows_truncated);
  json.at("rows_dropped_long").get_to(report.rows_dropped_long);
  json.at("fields_cut").get_to(report.fields_cut);
  json.at("rows_own_bos").get_to(report.rows_own_bos);
  json.at("tokens").get_to(report.tokens);
  json.at("supervised_tokens").get_to(report.supervised_tokens);
  json.at("unreadable").get_to(report.unreadable);
  json.at("content_hash").get_to(report.content_hash);
  report.from_cache = true;
  return report;
}

template <class T>
std::string_view bytes_of(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

// Takes pieces off the front of a mapped file; a piece that does not fit is a damaged file.
class PieceReader {
 public:
  explicit PieceReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class T>
  std::span<const T> take(int64_t count) {
    const auto limit = static_cast<int64_t>(rest_.size() / sizeof(T));
    CONVOY_CHECK(count >= 0 && count <= limit, DataError, "wanted {} items, {} fit", count, limit);
    const size_t bytes = static_cast<size_t>(count) * sizeof(T);
    const auto values =
        std::span(reinterpret_cast<const T*>(rest_.data()), static_cast<size_t>(count));
    rest_ = rest_.subspan(std::min(padded(bytes), rest_.size()));
    return values;
  }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace

TokenCache::TokenCache(const std::string& setting, const Log& log)
    : folder_(folder_of(setting)), log_(log) {}

std::filesystem::path TokenCache::path_of(const std::string& key) const {
  return folder_ ? *folder_ / (key + ".tokens") : std::filesystem::path();
}

std::shared_ptr<const TokenDataset::Buffer> TokenCache::map(const std::filesystem::path& path,
                                                            const std::string& key,
                                                            CachedSplit& split) {
  auto buffer = std::make_shared<TokenDataset::Buffer>();
  buffer->mapped.emplace(path);
  const std::span<const std::byte> bytes = buffer->mapped->bytes();
  Header header;
  CONVOY_CHECK(bytes.size() >= sizeof(Header), DataError, "{} bytes", bytes.size());
  std::memcpy(&header, bytes.data(), sizeof(Header));
  CONVOY_CHECK(header.magic == kMagic, DataError, "not a token cache of this version");
  const auto checked = bytes.subspan(kCheckedFrom);
  CONVOY_CHECK(
      crc32c({reinterpret_cast<const char*>(checked.data()), checked.size()}) == header.crc,
      DataError, "the checksum does not match");
  PieceReader pieces(bytes.subspan(sizeof(Header)));
  const auto text = pieces.take<char>(header.json_bytes);
  const auto json = nlohmann::json::parse(text.begin(), text.end());
  CONVOY_CHECK(json.at("key") == key, DataError, "the file is of another key");
  split.report = report_from_json(json.at("report"));
  split.policy = json.at("policy").get<std::string>();
  buffer->content_hash = json.at("content_hash").get<std::string>();
  CONVOY_CHECK(header.num_rows >= 0 && header.num_rows < std::ssize(bytes), DataError, "{} rows",
               header.num_rows);
  buffer->offsets = pieces.take<int64_t>(header.num_rows + 1);
  buffer->source_indices = pieces.take<int64_t>(header.num_rows);
  buffer->supervised_counts = pieces.take<int64_t>(header.num_rows);
  buffer->ids = pieces.take<int32_t>(header.num_tokens);
  buffer->supervised = pieces.take<uint8_t>(header.num_tokens);
  bool ascending = buffer->offsets.front() == 0 && buffer->offsets.back() == header.num_tokens;
  for (size_t row = 0; row + 1 < buffer->offsets.size(); ++row)
    ascending = ascending && buffer->offsets[row] <= buffer->offsets[row + 1];
  CONVOY_CHECK(ascending, DataError, "row offsets do not ascend");
  buffer->total_supervised_tokens = std::accumulate(buffer->supervised_counts.begin(),
                                                    buffer->supervised_counts.end(), int64_t{0});
  return buffer;
}

std::optional<CachedSplit> TokenCache::load(const std::string& key) const {
  std::error_code code;
  const std::filesystem::path path = path_of(key);
  if (!folder_ || !std::filesystem::exists(path, code)) return std::nullopt;
  try {
    CachedSplit split;
    split.dataset.buffer_ = map(path, key, split);
    return split;
  } catch (const Error& error) {
    log_.warning(fmt::format("token cache {} is damaged ({}) and is built anew", path.string(),
                             error.what()));
  } catch (const nlohmann::json::exception&) {
    log_.warning(fmt::format("token cache {} is damaged (its description) and is built anew",
                             path.string()));
  }
  return std::nullopt;
}

void TokenCache::store(const std::string& key, const CachedSplit& split) const {
  if (!folder_ || !split.dataset.buffer_) return;
  const TokenDataset::Buffer& buffer = *split.dataset.buffer_;
  const std::string text = nlohmann::json({{"key", key},
                                           {"report", report_to_json(split.report)},
                                           {"policy", split.policy},
                                           {"content_hash", buffer.content_hash}})
                               .dump(-1, ' ', true);
  const std::array<std::string_view, 6> pieces = {text,
                                                  bytes_of(buffer.offsets),
                                                  bytes_of(buffer.source_indices),
                                                  bytes_of(buffer.supervised_counts),
                                                  bytes_of(buffer.ids),
                                                  bytes_of(buffer.supervised)};
  Header header;
  header.json_bytes = static_cast<int64_t>(text.size());
  header.num_rows = static_cast<int64_t>(buffer.source_indices.size());
  header.num_tokens = static_cast<int64_t>(buffer.ids.size());
  const std::string_view header_bytes(reinterpret_cast<const char*>(&header), sizeof(Header));
  const auto padding = [](std::string_view piece) {
    return std::string_view("\0\0\0\0\0\0\0", padded(piece.size()) - piece.size());
  };
  header.crc = crc32c(header_bytes.substr(kCheckedFrom));
  for (const std::string_view piece : pieces)
    header.crc = crc32c(padding(piece), crc32c(piece, header.crc));
  try {
    AtomicFile file(path_of(key));
    file.write(header_bytes);
    for (const std::string_view piece : pieces) {
      file.write(piece);
      file.write(padding(piece));
    }
    file.commit();
  } catch (const IoError& error) {
    log_.warning(fmt::format("the token cache is not kept: {}", error.what()));
  }
}

}  // namespace convoy::data
