// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/telemetry/folder_test.h"
#include "convoy/core/telemetry/ranks/flight_record_layout.h"
#include "convoy/core/telemetry/ranks/flight_record_page.h"
#include "convoy/core/telemetry/ranks/flight_record_writer.h"
#include "load/slowdown.h"

namespace convoy::telemetry {
namespace {

using std::chrono::milliseconds;

constexpr Collective kAllReduce{.group = "dp",
                                .operation = "all_reduce",
                                .sequence = 2070,
                                .dtype = "float32",
                                .shape = {1024, 1024, 0},
                                .num_dims = 2,
                                .num_elements = 1 << 20,
                                .bytes = 4 << 20,
                                .group_size = 4};

class FlightRecord : public ::testing::Test {
 protected:
  FlightRecord() { offer(page_.descriptor()); }
  ~FlightRecord() override { ::unsetenv(kFlightVariable); }

  static void offer(int descriptor) {
    ::setenv(kFlightVariable, std::to_string(descriptor).c_str(), 1);
  }
  // The pages as a process sees them that writes to them without the writer's rules.
  flight_layout::Pages& raw() {
    if (raw_ == nullptr)
      raw_ = static_cast<flight_layout::Pages*>(::mmap(nullptr, sizeof(flight_layout::Pages),
                                                       PROT_READ | PROT_WRITE, MAP_SHARED,
                                                       page_.descriptor(), 0));
    return *raw_;
  }
  static pid_t in_a_process(const std::function<void()>& body) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    body();
    ::_exit(0);
  }
  static void wait_for(pid_t child) { ::waitpid(child, nullptr, 0); }

  FlightPage page_{3};
  flight_layout::Pages* raw_ = nullptr;
};

TEST_F(FlightRecord, SaysWhatTheRankSaid) {
  FlightWriter writer = FlightWriter::attach();
  ASSERT_TRUE(writer.attached());
  writer.set_step(17);
  writer.set_checkpoint_step(10);
  writer.set_phase("backward");
  writer.done(writer.enter(kAllReduce));
  const uint64_t second = writer.enter({.group = "dp", .operation = "barrier", .sequence = 2071});
  EXPECT_EQ(page_.waiting_us(), -1);
  writer.wait(second);
  EXPECT_GE(page_.waiting_us(), 0);
  const RankFlight flight = page_.read();
  EXPECT_EQ(flight.rank, 3);
  EXPECT_EQ(flight.pid, ::getpid());
  EXPECT_FALSE(flight.ended);
  EXPECT_EQ(flight.step, 17);
  EXPECT_EQ(flight.checkpoint_step, 10);
  EXPECT_EQ(flight.phase, "backward");
  EXPECT_EQ(flight.num_collectives, 2);
  ASSERT_EQ(flight.records.size(), 2U);
  const CollectiveRecord& first = flight.records[0];
  EXPECT_EQ(first.group, "dp");
  EXPECT_EQ(first.operation, "all_reduce");
  EXPECT_EQ(first.sequence, 2070);
  EXPECT_EQ(first.dtype, "float32");
  EXPECT_EQ(first.shape[1], 1024);
  EXPECT_EQ(first.num_elements, 1 << 20);
  EXPECT_EQ(first.bytes, 4 << 20);
  EXPECT_EQ(first.group_size, 4);
  EXPECT_EQ(first.state, CollectiveState::Done);
  EXPECT_GE(first.entered_us_ago, first.left_us_ago);
  EXPECT_LT(first.entered_us_ago, 5'000'000);
  EXPECT_EQ(flight.records[1].state, CollectiveState::Waited);
  writer.failed(second);
  EXPECT_EQ(page_.read().records[1].state, CollectiveState::Failed);
  EXPECT_EQ(page_.waiting_us(), -1);
  EXPECT_EQ(page_.read(1).records[0].sequence, 2071);
}

TEST_F(FlightRecord, WriterBeatsAndSaysGoodbye) {
  EXPECT_FALSE(page_.read().attached());
  {
    const FlightWriter writer = FlightWriter::attach();
    const int64_t before = page_.read().num_beats;
    std::this_thread::sleep_for(milliseconds(700));
    EXPECT_GE(page_.read().num_beats, before + 2);
    EXPECT_LT(page_.read().beat_us_ago, 1'000'000);
    EXPECT_FALSE(page_.read().ended);
  }
  EXPECT_TRUE(page_.read().ended);
}

TEST_F(FlightRecord, StoppedProcessDoesNotBeat) {
  const pid_t child = in_a_process([] {
    const FlightWriter writer = FlightWriter::attach();
    ::pause();
  });
  while (page_.read().num_beats < 1) std::this_thread::sleep_for(milliseconds(5));
  ::kill(child, SIGSTOP);
  std::this_thread::sleep_for(milliseconds(50));
  const int64_t before = page_.read().num_beats;
  std::this_thread::sleep_for(milliseconds(700));
  EXPECT_EQ(page_.read().num_beats, before);
  ::kill(child, SIGCONT);
  while (page_.read().num_beats == before) std::this_thread::sleep_for(milliseconds(5));
  ::kill(child, SIGKILL);
  wait_for(child);
  EXPECT_FALSE(page_.read().ended);  // a killed process cannot record its end
}

TEST_F(FlightRecord, KeepsTheLastThousand) {
  FlightWriter writer = FlightWriter::attach();
  uint64_t first = 0;
  for (int64_t sequence = 0; sequence < 5000; ++sequence) {
    const uint64_t number =
        writer.enter({.group = "g", .operation = "barrier", .sequence = sequence});
    if (sequence == 0) first = number;
  }
  writer.done(first);  // another record has this slot by now
  const RankFlight flight = page_.read();
  EXPECT_EQ(flight.num_collectives, 5000);
  ASSERT_EQ(flight.records.size(), 1024U);
  for (size_t index = 0; index < flight.records.size(); ++index) {
    EXPECT_EQ(flight.records[index].sequence, static_cast<int64_t>(5000 - 1024 + index));
    EXPECT_EQ(flight.records[index].state, CollectiveState::Entered);
  }
}

TEST_F(FlightRecord, ReaderSeesOnlyWholeRecords) {
  // All fields of a record hold the same number, so a mixture of two records would show two
  // numbers.
  const pid_t child = in_a_process([] {
    FlightWriter writer = FlightWriter::attach();
    for (int64_t n = 1;; ++n) {
      const std::string name = std::to_string(n);
      writer.enter({.group = name,
                    .operation = name,
                    .sequence = n,
                    .dtype = "int64",
                    .shape = {n, n, n},
                    .num_dims = 3,
                    .num_elements = n,
                    .bytes = n});
    }
  });
  int64_t seen = 0;
  const auto until = std::chrono::steady_clock::now() + milliseconds(500);
  while (std::chrono::steady_clock::now() < until) {
    for (const CollectiveRecord& record : page_.read(64).records) {
      const std::string name = std::to_string(record.sequence);
      const std::array<int64_t, 3> shape = {record.sequence, record.sequence, record.sequence};
      const bool whole = record.group == name && record.operation == name &&
                         record.num_elements == record.sequence &&
                         record.bytes == record.sequence && record.shape == shape;
      ASSERT_TRUE(whole) << record.group << " " << record.operation << " " << record.sequence;
      ++seen;
    }
  }
  ::kill(child, SIGKILL);
  wait_for(child);
  EXPECT_GT(seen, 0);
}

TEST_F(FlightRecord, TornRecordOfADeadRankIsLeftOut) {
  FlightWriter writer = FlightWriter::attach();
  for (int64_t sequence = 0; sequence < 3; ++sequence)
    writer.enter({.group = "g", .operation = "barrier", .sequence = sequence});
  raw().slots[1].version = 2 * 1 + 1;  // as if the rank had died while it wrote this record
  ASSERT_EQ(page_.read().records.size(), 2U);
  EXPECT_EQ(page_.read().records[1].sequence, 2);
}

TEST_F(FlightRecord, NothingARankWritesHarmsTheReader) {
  FlightWriter writer = FlightWriter::attach();
  for (int64_t sequence = 0; sequence < 2000; ++sequence) writer.enter(kAllReduce);
  uint64_t seed = 1;
  for (int round = 0; round < 40; ++round) {
    auto* const words = reinterpret_cast<flight_layout::Word*>(&raw());
    for (size_t word = 0; word < sizeof(raw()) / sizeof(*words); ++word) {
      if (word >= 16 && word < 512) continue;  // the rest of the head's page is unused
      seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
      const uint64_t value = seed >> (seed >> 58);
      // The versions of the records are kept, so the reader accepts the random words behind them.
      if (word < 512 || word % 16 != 0) words[word] = round % 2 == 0 ? value : ~uint64_t{0} - value;
    }
    raw().head.next_number = 2000;
    const RankFlight flight = page_.read();
    EXPECT_EQ(flight.records.size(), 1024U);
    EXPECT_EQ(parse_flight_json(flight_json(flight, 1024)), flight);
    raw().head.next_number = seed;
    page_.read();
  }
}

TEST_F(FlightRecord, OnlyItsOwnFormatIsTaken) {
  for (auto word : {&flight_layout::Head::magic, &flight_layout::Head::version,
                    &flight_layout::Head::total_bytes, &flight_layout::Head::num_slots}) {
    const uint64_t before = (raw().head.*word).load();
    raw().head.*word = before + 1;
    EXPECT_FALSE(FlightWriter::attach().attached());
    raw().head.*word = before;
  }
  EXPECT_TRUE(FlightWriter::attach().attached());
  const int short_one = ::memfd_create("short", MFD_ALLOW_SEALING);
  offer(short_one);
  EXPECT_FALSE(FlightWriter::attach().attached());
  ::close(short_one);
  for (const char* wrong : {"0", "1", "-1", "x", "", "99999999999", "4096", "3 "}) {
    ::setenv(kFlightVariable, wrong, 1);
    EXPECT_FALSE(FlightWriter::attach().attached()) << wrong;
  }
}

TEST_F(FlightRecord, WithoutALauncherNothingIsWritten) {
  ::unsetenv(kFlightVariable);
  FlightWriter writer = FlightWriter::attach();
  EXPECT_FALSE(writer.attached());
  writer.set_step(1);
  writer.set_phase("data");
  writer.wait(writer.enter(kAllReduce));
  writer.done(0);
  writer.failed(0);
}

TEST_F(FlightRecord, SecondProcessDoesNotTakeThePagesOfALivingOne) {
  FlightWriter writer = FlightWriter::attach();
  wait_for(in_a_process([] { ::_exit(FlightWriter::attach().attached() ? 1 : 0); }));
  EXPECT_EQ(page_.read().pid, ::getpid());
  EXPECT_FALSE(FlightWriter::attach().attached());
}

TEST_F(FlightRecord, SuccessorOfADeadProcessTakesThePages) {
  wait_for(in_a_process([] {
    FlightWriter writer = FlightWriter::attach();
    writer.enter(kAllReduce);
    ::kill(::getpid(), SIGKILL);
  }));
  FlightWriter writer = FlightWriter::attach();
  ASSERT_TRUE(writer.attached());
  EXPECT_EQ(page_.read().pid, ::getpid());
  EXPECT_EQ(page_.read().records.size(), 1U);
}

TEST_F(FlightRecord, EnteringCostsLessThanAMicrosecond) {
  FlightWriter writer = FlightWriter::attach();
  constexpr int kTurns = 100'000;
  double best_ns = 1e9;
  for (int attempt = 0; attempt < 5; ++attempt) {
    const auto start = std::chrono::steady_clock::now();
    for (int turn = 0; turn < kTurns; ++turn) {
      const uint64_t number = writer.enter(kAllReduce);
      writer.wait(number);
      writer.done(number);
    }
    best_ns = std::min(
        best_ns,
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() /
            kTurns);
  }
  RecordProperty("nanoseconds", static_cast<int>(best_ns));
#ifdef __SANITIZE_THREAD__
  constexpr double kMost = 10'000;
#else
  constexpr double kMost = 1000;
#endif
  EXPECT_LT(best_ns, kMost * testing::slowdown());
}

TEST_F(FlightRecord, SurvivesJson) {
  FlightWriter writer = FlightWriter::attach();
  const uint64_t open = writer.enter(kAllReduce);
  for (int64_t sequence = 0; sequence < 300; ++sequence)
    writer.done(
        writer.enter({.group = "a\"\\\n\xff", .operation = "barrier", .sequence = sequence}));
  const RankFlight all = page_.read();
  EXPECT_EQ(parse_flight_json(flight_json(all)), all);  // the oldest is unfinished: all are kept
  writer.done(open);
  const RankFlight flight = page_.read();
  EXPECT_EQ(flight.records[1].group, "a????");
  EXPECT_EQ(parse_flight_json(flight_json(flight, 1000)), flight);
  EXPECT_EQ(parse_flight_json(flight_json(flight)).records.size(), 64U);
  EXPECT_LT(flight_json(flight).size(), 20'000U);
  const TestFolder folder;
  const auto path = write_flight_file(folder.path(), flight);
  EXPECT_EQ(path.filename(), "flight-3.json");
  EXPECT_EQ(parse_flight_json(read_file(path)), flight);
  EXPECT_THROW(write_flight_file("/nowhere", flight), IoError);
}

TEST_F(FlightRecord, HostileJsonIsRefused) {
  FlightWriter writer = FlightWriter::attach();
  writer.enter(kAllReduce);
  const std::string good = flight_json(page_.read());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  EXPECT_NO_THROW(parse_flight_json(good));
  for (const std::string& bad : {std::string(),
                                 std::string("[]"),
                                 std::string("{}"),
                                 std::string("null"),
                                 std::string(100'000, '['),
                                 std::string(5 << 20, ' '),
                                 good.substr(0, good.size() / 2),
                                 with("\"version\":1", "\"version\":2"),
                                 with("\"rank\":3", "\"rank\":-1"),
                                 with("\"rank\":3", "\"rank\":18446744073709551615"),
                                 with("\"rank\":3", "\"rank\":1e400"),
                                 with("\"rank\":3", "\"rank\":\"3\""),
                                 with("\"ended\":false", "\"ended\":0"),
                                 with("\"sequence\":2070", "\"sequence\":-5"),
                                 with("\"all_reduce\"", "\"" + std::string(17, 'x') + "\""),
                                 with("\"all_reduce\"", "\"\\u001b[2J\""),
                                 with("\"entered\"", "\"dreaming\""),
                                 with("[1024,1024]", "[1,1,1,1]"),
                                 with("[1024,1024]", "[1.5]"),
                                 with("\"records\":[", "\"records\":[7,"),
                                 with("\"records\":[", "\"other\":[")})
    EXPECT_THROW(parse_flight_json(bad), DataError) << bad.substr(0, 100);
  for (size_t cut = 0; cut < good.size(); ++cut)
    EXPECT_THROW(parse_flight_json(good.substr(0, cut)), DataError);
}

TEST(FlightPages, SixtyFourRanks) {
  std::vector<FlightPage> pages;
  for (int rank = 0; rank < 64; ++rank) pages.emplace_back(rank);
  for (int rank = 0; rank < 64; ++rank) {
    ::setenv(kFlightVariable, std::to_string(pages[static_cast<size_t>(rank)].descriptor()).c_str(),
             1);
    FlightWriter writer = FlightWriter::attach();
    ASSERT_TRUE(writer.attached());
    writer.set_step(rank);
  }
  ::unsetenv(kFlightVariable);
  for (int rank = 0; rank < 64; ++rank)
    EXPECT_EQ(pages[static_cast<size_t>(rank)].read().step, rank);
}

}  // namespace
}  // namespace convoy::telemetry
