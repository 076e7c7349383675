// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/telemetry/logs/tensorboard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>

#include "convoy/core/base/files.h"
#include "convoy/core/telemetry/folder_test.h"
#include "convoy/core/telemetry/logs/hparams.h"
#include "files/run_script.h"

namespace convoy::telemetry {
namespace {

namespace fs = std::filesystem;

// A strict protobuf walker: field number -> raw values in order. Throws on anything malformed.
class Message {
 public:
  explicit Message(std::string_view bytes) {
    while (!bytes.empty()) {
      const uint64_t key = take_varint(bytes);
      switch (key & 7) {
        case 0:
          varints[key >> 3].push_back(take_varint(bytes));
          break;
        case 1:
          fixed[key >> 3].push_back(take(bytes, 8));
          break;
        case 5:
          fixed[key >> 3].push_back(take(bytes, 4));
          break;
        case 2: {
          const uint64_t length = take_varint(bytes);
          texts[key >> 3].push_back(take(bytes, length));
          break;
        }
        default:
          throw std::runtime_error("unknown wire type");
      }
    }
  }

  Message child(uint64_t field) const { return Message(texts.at(field).at(0)); }

  std::map<uint64_t, std::vector<uint64_t>> varints;
  std::map<uint64_t, std::vector<std::string>> fixed;
  std::map<uint64_t, std::vector<std::string>> texts;

 private:
  static std::string take(std::string_view& bytes, uint64_t count) {
    if (count > bytes.size()) throw std::runtime_error("cut");
    std::string taken(bytes.substr(0, count));
    bytes.remove_prefix(count);
    return taken;
  }
  static uint64_t take_varint(std::string_view& bytes) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(take(bytes, 1)[0]);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    throw std::runtime_error("varint too long");
  }
};

template <class Number>
Number number_of(const std::string& bytes) {
  if (bytes.size() != sizeof(Number)) throw std::runtime_error("wrong width");
  Number value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

std::vector<Message> read_file_of_events(const fs::path& path) {
  const std::string text = read_file(path);
  std::string_view bytes = text;
  std::vector<Message> events;
  while (!bytes.empty()) {
    if (bytes.size() < 16) throw std::runtime_error("cut header");
    const auto length = number_of<uint64_t>(std::string(bytes.substr(0, 8)));
    if (number_of<uint32_t>(std::string(bytes.substr(8, 4))) != masked_crc32c(bytes.substr(0, 8)))
      throw std::runtime_error("length checksum");
    if (bytes.size() < 16 + length) throw std::runtime_error("cut record");
    const std::string_view payload = bytes.substr(12, length);
    if (number_of<uint32_t>(std::string(bytes.substr(12 + length, 4))) != masked_crc32c(payload))
      throw std::runtime_error("payload checksum");
    events.emplace_back(payload);
    bytes.remove_prefix(16 + length);
  }
  return events;
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

TEST(TensorBoard, ChecksumKnownAnswers) { EXPECT_EQ(masked_crc32c("123456789"), 0xc78ab0e5u); }

TEST(TensorBoard, RecordHasLengthPayloadAndBothChecksums) {
  const std::string record = event_record("123456789");
  ASSERT_EQ(record.size(), 8u + 4 + 9 + 4);
  EXPECT_EQ(record.substr(0, 8), std::string("\x09\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(record.substr(12, 9), "123456789");
  EXPECT_EQ(record.substr(21), "\xe5\xb0\x8a\xc7");
}

TEST(TensorBoard, ScalarsReadBackStrictly) {
  const TestFolder folder;
  EventWriter writer(folder.path(), Log());
  writer.add_scalar("train/loss", 1, 2.5, 1000.25);
  writer.add_scalar("train/loss", int64_t{1} << 40, -0.125, 1001);
  const auto events = read_file_of_events(writer.path());
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].texts.at(3).at(0), "brain.Event:2");
  EXPECT_EQ(number_of<double>(events[2].fixed.at(1).at(0)), 1000.25);
  EXPECT_EQ(events[2].varints.at(2).at(0), 1u);
  const Message first = events[2].child(5).child(1);
  EXPECT_EQ(first.texts.at(1).at(0), "train/loss");
  EXPECT_EQ(number_of<float>(first.fixed.at(2).at(0)), 2.5f);
  EXPECT_EQ(first.child(9).child(1).texts.at(1).at(0), "scalars");
  EXPECT_EQ(events[3].varints.at(2).at(0), uint64_t{1} << 40);
  const Message second = events[3].child(5).child(1);
  EXPECT_EQ(number_of<float>(second.fixed.at(2).at(0)), -0.125f);
  EXPECT_EQ(second.texts.count(9), 0u) << "metadata belongs to a tag's first use only";
}

TEST(TensorBoard, TextIsAStringTensor) {
  const TestFolder folder;
  EventWriter writer(folder.path(), Log());
  writer.add_text("args/text_summary", "# é");
  const Message value = read_file_of_events(writer.path()).at(2).child(5).child(1);
  EXPECT_EQ(value.child(8).varints.at(1).at(0), 7u);
  EXPECT_EQ(value.child(8).texts.at(8).at(0), "# é");
  EXPECT_EQ(value.child(9).child(1).texts.at(1).at(0), "text");
}

TEST(TensorBoard, AResumedRunPurgesFromItsFirstStepInAFileThatSortsLast) {
  const TestFolder folder;
  for (int64_t restart = 0; restart < 12; ++restart) {
    const EventWriter writer(folder.path(), Log(), 10 * restart + 1);
    EXPECT_EQ(files_in(folder.path()).back(), writer.path());
    const auto events = read_file_of_events(writer.path());
    ASSERT_EQ(events.size(), 2u);
    EXPECT_EQ(events[1].child(7).varints.at(1).at(0), 1u);
    EXPECT_EQ(events[1].varints.at(2).at(0), static_cast<uint64_t>(10 * restart + 1));
  }
}

TEST(TensorBoard, TheStockReaderShowsOneCurveOverAResume) {
  const TestFolder folder;
  {
    EventWriter first(folder.path(), Log());
    for (int64_t step = 1; step <= 6; ++step)
      first.add_scalar("train/loss", step, static_cast<double>(step));
    first.add_text("args/text_summary", "seed: 1");
    first.add_layout("Convoy", {{"loss by rank", {R"(rank/\d+/loss)"}}});
  }
  EventWriter second(folder.path(), Log(), 5);  // the run resumed after step 4
  for (int64_t step = 5; step <= 7; ++step)
    second.add_scalar("train/loss", step, 10 * static_cast<double>(step));

  const char* python = std::getenv("CONVOY_PEER_PYTHON");
  const auto [status, text] = testing::run_command(
      fmt::format("{} {}/tests/golden/telemetry/read_scalars.py {} 2>/dev/null",
                  python == nullptr ? "python3" : python, std::getenv("CONVOY_SOURCE_DIR"),
                  folder.path().string()));
  if (status == 77 || status == 127)
    GTEST_SKIP() << "no Python with TensorBoard (CONVOY_PEER_PYTHON)";
  ASSERT_EQ(status, 0) << text;
  const auto found = nlohmann::json::parse(text);
  EXPECT_EQ(found["scalars"]["train/loss"],
            nlohmann::json::parse("[[1,1],[2,2],[3,3],[4,4],[5,50],[6,60],[7,70]]"));
  EXPECT_EQ(found["texts"]["args/text_summary"], "seed: 1");
  EXPECT_EQ(found["texts"]["custom_scalars__config__"],
            nlohmann::json::parse(R"(["loss by rank"])"));
}

// Runs tests/golden/telemetry/SCRIPT on a folder and returns its output; empty without a Python
// that has TensorBoard.
std::optional<nlohmann::json> read_by_tensorboard(const std::string& script,
                                                  const fs::path& folder) {
  const char* python = std::getenv("CONVOY_PEER_PYTHON");
  const auto [status, text] = testing::run_command(fmt::format(
      "{} {}/tests/golden/telemetry/{} {} 2>/dev/null", python == nullptr ? "python3" : python,
      std::getenv("CONVOY_SOURCE_DIR"), script, folder.string()));
  if (status == 77 || status == 127) return std::nullopt;
  EXPECT_EQ(status, 0) << text;
  return nlohmann::json::parse(text);
}

TEST(TensorBoard, TheHparamsPageGroupsSessionsAndKnowsNumbers) {
  const TestFolder folder;
  {
    EventWriter experiment(folder.path(), Log());
    add_experiment(experiment, {.description = "d",
                                .parameters = {{.name = "method", .values = {std::string("gd")}},
                                               {.name = "rate", .values = {0.1, 0.01}},
                                               {.name = "warm", .values = {true}},
                                               {.name = "width", .kind = 1.0}},
                                .metric_tags = {"value"}});
  }
  for (int seed = 0; seed < 2; ++seed) {
    EventWriter run(folder.path() / "a" / fmt::format("seed-{}", seed), Log());
    add_session(run, {.values = {{"method", std::string("gd")}, {"rate", 0.1}, {"warm", true}},
                      .group = "rate=0.1"});
    run.add_scalar("value", 0, 2 + seed);
    add_session_end(run, true);
  }
  EventWriter failed(folder.path() / "b", Log());
  add_session(failed, {.values = {{"rate", 0.01}, {"width", 4.0}}, .group = "rate=0.01"});
  add_session_end(failed, false);

  const auto found = read_by_tensorboard("read_hparams.py", folder.path());
  if (!found) GTEST_SKIP() << "no Python with TensorBoard (CONVOY_PEER_PYTHON)";
  const nlohmann::json& parameters = (*found)["parameters"];
  EXPECT_EQ(parameters["rate"]["type"], "DATA_TYPE_FLOAT64");
  EXPECT_EQ(parameters["rate"]["values"], nlohmann::json::parse("[0.1, 0.01]"));
  EXPECT_EQ(parameters["warm"]["type"], "DATA_TYPE_BOOL");
  EXPECT_EQ(parameters["method"]["type"], "DATA_TYPE_STRING");
  EXPECT_EQ(parameters["width"]["type"], "DATA_TYPE_FLOAT64");
  EXPECT_EQ((*found)["metrics"], nlohmann::json::parse(R"(["value"])"));
  std::map<std::string, nlohmann::json> groups;
  for (const nlohmann::json& group : (*found)["groups"]) groups[group["name"]] = group;
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups["rate=0.1"]["parameters"]["rate"], 0.1);
  ASSERT_EQ(groups["rate=0.1"]["sessions"].size(), 2u);
  std::set<double> values;
  for (const nlohmann::json& session : groups["rate=0.1"]["sessions"]) {
    EXPECT_EQ(session["status"], "STATUS_SUCCESS");
    values.insert(session["metrics"]["value"].get<double>());
  }
  EXPECT_EQ(values, (std::set<double>{2, 3}));
  EXPECT_EQ(groups["rate=0.01"]["sessions"][0]["status"], "STATUS_FAILURE");
}

TEST(TensorBoard, FileNameFollowsTheRule) {
  const TestFolder folder;
  const std::string name = EventWriter(folder.path(), Log()).path().filename().string();
  ASSERT_TRUE(name.starts_with("events.out.tfevents."));
  const std::string seconds = name.substr(20, 10);
  EXPECT_TRUE(std::all_of(seconds.begin(), seconds.end(), ::isdigit)) << name;
  EXPECT_EQ(name[30], '.');
  EXPECT_GE(std::count(name.begin(), name.end(), '.'), 6) << name;
}

}  // namespace
}  // namespace convoy::telemetry
