// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/tokens/token_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <utility>

#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/base/nameless_file.h"
#include "convoy/data/datasets/tokens/dataset_buffer.h"
#include "convoy/data/datasets/tokens/token_file.h"

namespace convoy::data {
namespace {

std::optional<std::filesystem::path> folder_of(const std::string& setting) {
  if (setting == "none") return std::nullopt;
  if (!setting.empty()) return setting;
  if (const std::filesystem::path cache = environment_text("XDG_CACHE_HOME"); cache.is_absolute())
    return cache / "convoy" / "tokens";
  if (const std::filesystem::path home = environment_text("HOME"); home.is_absolute())
    return home / ".cache" / "convoy" / "tokens";
  return std::nullopt;
}

nlohmann::json report_to_json(const SplitReport& report) {
  nlohmann::json json = {{"name", report.name},
                         {"schema", report.schema},
                         {"warnings", report.warnings},
                         {"content_hash", report.content_hash}};
  SplitReport::for_each_count(report, [&](const char* name, int64_t count) { json[name] = count; });
  return json;
}

SplitReport report_from_json(const nlohmann::json& json) {
  SplitReport report{.name = json.at("name"),
                     .files = {},
                     .schema = json.at("schema"),
                     .warnings = json.at("warnings"),
                     .content_hash = json.at("content_hash")};
  SplitReport::for_each_count(
      report, [&](const char* name, int64_t& count) { json.at(name).get_to(count); });
  return report;
}

// Takes pieces from the front of a mapped file. A piece beyond the end means that the file is
// damaged.
class PieceReader {
 public:
  explicit PieceReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class T>
  std::span<const T> take(int64_t count) {
    const auto limit = static_cast<int64_t>(rest_.size() / sizeof(T));
    CONVOY_CHECK(count >= 0 && count <= limit, DataError,
                 "{} items are recorded, but the file holds {}", count, limit);
    const size_t bytes = static_cast<size_t>(count) * sizeof(T);
    const auto values =
        std::span(reinterpret_cast<const T*>(rest_.data()), static_cast<size_t>(count));
    rest_ = rest_.subspan(std::min(padded(bytes), rest_.size()));
    return values;
  }

 private:
  std::span<const std::byte> rest_;
};

// Writes a file that gets its name when it is complete.
class UnfinishedFile {
 public:
  explicit UnfinishedFile(const std::filesystem::path& path) : path_(path) {
    const std::filesystem::path folder = path.parent_path();
    std::filesystem::create_directories(folder);
    file_ = Descriptor(open_nameless(folder));
    if (file_.open()) return;
    name_ = free_name_beside(path);
    file_ = Descriptor(::open(name_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!file_.open()) fail("be created");
  }
  ~UnfinishedFile() {
    if (!name_.empty()) ::unlink(name_.c_str());
  }
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;

  int descriptor() const { return file_.get(); }
  void commit() {
    if (::fsync(file_.get()) != 0) fail("be written");
    if (name_.empty()) {
      name_ = free_name_beside(path_);
      if (!give_name(file_.get(), name_)) fail("be named");
    }
    if (::rename(name_.c_str(), path_.c_str()) != 0) fail("be named");
    name_.clear();
    sync_folder(path_.parent_path());
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw IoError(fmt::format("could not {}: {}", what, std::strerror(errno)),
                  {.file = path_.string(),
                   .hint = "check free space and permissions, or name another data.cache_dir"});
  }

  std::filesystem::path path_;
  std::filesystem::path name_;  // empty: the file has no name
  Descriptor file_;
};

std::string description(const std::string& key, const SplitReport& report,
                        const std::string& policy, const std::string& content_hash) {
  return nlohmann::json({{"key", key},
                         {"report", report_to_json(report)},
                         {"policy", policy},
                         {"content_hash", content_hash}})
      .dump(-1, ' ', true);
}

}  // namespace

TokenCache::TokenCache(const std::string& setting, const Log& log)
    : folder_(folder_of(setting)), log_(log) {}

std::filesystem::path TokenCache::path_of(const std::string& key) const {
  return folder_ ? *folder_ / (key + ".tokens") : std::filesystem::path();
}

CachedSplit TokenCache::map(const std::filesystem::path& path, const std::string& key) {
  CachedSplit split;
  auto buffer = std::make_shared<TokenDataset::Buffer>();
  buffer->mapped.emplace(path);
  const std::span<const std::byte> bytes = buffer->mapped->bytes();
  TokenFileHeader header;
  CONVOY_CHECK(bytes.size() >= sizeof(header), DataError, "{} bytes", bytes.size());
  std::memcpy(&header, bytes.data(), sizeof(header));
  CONVOY_CHECK(header.magic == TokenFileHeader{}.magic, DataError,
               "not a token cache of this version");
  CONVOY_CHECK(crc32c_of_file(buffer->mapped->descriptor(), TokenFileHeader::checked_from(),
                              std::ssize(bytes)) == header.crc,
               DataError, "the checksum does not match");
  PieceReader pieces(bytes.subspan(sizeof(header)));
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
  CONVOY_CHECK(header.num_weights == 0 || header.num_weights == header.num_tokens, DataError,
               "{} weights", header.num_weights);
  buffer->weights = pieces.take<float>(header.num_weights);
  CONVOY_CHECK(header.num_labels == 0 || header.num_labels == header.num_rows, DataError,
               "{} labels", header.num_labels);
  buffer->labels = pieces.take<uint8_t>(header.num_labels);
  bool ascending = buffer->offsets.front() == 0 && buffer->offsets.back() == header.num_tokens;
  for (size_t row = 0; row + 1 < buffer->offsets.size(); ++row)
    ascending = ascending && buffer->offsets[row] <= buffer->offsets[row + 1];
  CONVOY_CHECK(ascending, DataError, "row offsets do not ascend");
  buffer->total_supervised_tokens = std::accumulate(buffer->supervised_counts.begin(),
                                                    buffer->supervised_counts.end(), int64_t{0});
  split.dataset.buffer_ = std::move(buffer);
  return split;
}

std::optional<CachedSplit> TokenCache::load(const std::string& key) const {
  std::error_code code;
  const std::filesystem::path path = path_of(key);
  if (!folder_ || !std::filesystem::exists(path, code)) return std::nullopt;
  try {
    CachedSplit split = map(path, key);
    split.report.from_cache = true;
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

CachedSplit TokenCache::store(const std::string& key, const TokenFileRows& rows,
                              const SplitReport& report, const std::string& policy) const {
  const auto fill = [&](int descriptor) {
    const std::string placeholder(64, '0');  // a placeholder as long as the hash
    const auto json_bytes =
        static_cast<int64_t>(description(key, report, policy, placeholder).size());
    TokenFileWriter writer(descriptor, json_bytes, rows.shape);
    rows.for_each([&](const SpooledRow& row) {
      writer.add(row.index, row.ids, row.supervised, row.weights, row.record.is_desirable);
    });
    writer.finish(description(key, report, policy, writer.content_hash()));
  };
  if (!folder_) {
    const ScratchFile memory = ScratchFile::in_memory();
    fill(memory.descriptor());
    return map(fmt::format("/proc/self/fd/{}", memory.descriptor()), key);
  }
  UnfinishedFile file(path_of(key));
  fill(file.descriptor());
  CachedSplit split = map(fmt::format("/proc/self/fd/{}", file.descriptor()), key);
  file.commit();
  return split;
}

ScratchFile TokenCache::scratch() const {
  if (!folder_) return ScratchFile::in_memory();
  std::error_code code;
  std::filesystem::create_directories(*folder_, code);
  return ScratchFile(*folder_);
}

}  // namespace convoy::data
