// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/ledger/segment.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "files/temporary_folder.h"

namespace convoy::process {
namespace {

using convoy::testing::TemporaryFolder;

class Segments : public ::testing::Test {
 protected:
  std::string bytes_of(const std::string& file) const { return read_file(folder_ / file); }
  void put(const std::string& file, const std::string& bytes) const {
    std::ofstream(folder_ / file, std::ios::binary | std::ios::trunc) << bytes;
  }
  std::vector<std::string> records_of(const std::string& file) const {
    std::vector<std::string> records;
    for_each_record(folder_ / file,
                    [&](int64_t, RecordKind, std::string& bytes) { records.push_back(bytes); });
    return records;
  }

  TemporaryFolder folder_;
};

TEST_F(Segments, RecordsAreReadWhereTheyLie) {
  const std::string odd("a\0b\n\xff", 5);
  SegmentWriter writer(folder_ / ".", "one");
  const SegmentOffset first = writer.append(RecordKind::Text, odd);
  const SegmentOffset second = writer.append(RecordKind::Row, "");
  const SegmentOffset third = writer.append(RecordKind::Text, std::string(300'000, 'x'));
  SegmentReader reader(folder_ / ".");
  EXPECT_EQ(reader.read(third, RecordKind::Text), std::string(300'000, 'x'));
  EXPECT_EQ(reader.read(first, RecordKind::Text), odd);
  EXPECT_EQ(reader.read(second, RecordKind::Row), "");
  const SegmentOffset last = writer.append(RecordKind::Text, "more");
  EXPECT_EQ(last.offset, writer.size_bytes() - 20);
  EXPECT_EQ(records_of("one").size(), 4u);
}

TEST_F(Segments, APlaceThatHoldsNoSuchRecordIsAnError) {
  SegmentWriter writer(folder_ / ".", "one");
  const SegmentOffset place = writer.append(RecordKind::Text, "some text");
  SegmentReader reader(folder_ / ".");
  EXPECT_THROW(reader.read(place, RecordKind::Row), DataError);
  for (const SegmentOffset& wrong :
       {SegmentOffset{"one", 1, 9}, SegmentOffset{"one", 0, 8}, SegmentOffset{"one", -1, 9},
        SegmentOffset{"one", 1000, 9}, SegmentOffset{"two", 0, 9}, SegmentOffset{"../one", 0, 9}})
    EXPECT_THROW(reader.read(wrong, RecordKind::Text), DataError) << wrong.file << wrong.offset;
}

TEST_F(Segments, AFileThatWasOpenedBeforeIsLookedAtAgain) {
  SegmentOffset place;
  {
    SegmentWriter writer(folder_ / ".", "longer");
    writer.append(RecordKind::Text, "the first");
    place = writer.append(RecordKind::Text, "the second");
  }
  put("seen", bytes_of("longer").substr(0, static_cast<size_t>(place.offset)));
  SegmentReader reader(folder_ / ".");
  EXPECT_EQ(reader.read({"seen", 0, 9}, RecordKind::Text), "the first");
  // Imitates a host whose file system cached the file's earlier end.
  std::filesystem::rename(folder_ / "longer", folder_ / "seen");
  place.file = "seen";
  EXPECT_EQ(reader.read(place, RecordKind::Text), "the second");
}

TEST_F(Segments, EveryTornEndOfTheLastRecordIsCutBeforeMoreIsWritten) {
  {
    SegmentWriter writer(folder_ / ".", "whole");
    writer.append(RecordKind::Text, "the first");
    writer.append(RecordKind::Text, "the second");
    writer.append(RecordKind::Row, "the last one");
  }
  const std::string whole = bytes_of("whole");
  const size_t kept = whole.size() - 16 - std::string("the last one").size();
  for (size_t length = kept; length < whole.size(); ++length) {
    put("torn", whole.substr(0, length));
    EXPECT_EQ(records_of("torn"), (std::vector<std::string>{"the first", "the second"}));
    SegmentWriter writer(folder_ / ".", "torn");
    EXPECT_EQ(writer.size_bytes(), static_cast<int64_t>(kept)) << length;
    const SegmentOffset place = writer.append(RecordKind::Row, "x");
    EXPECT_EQ(records_of("torn"), (std::vector<std::string>{"the first", "the second", "x"}));
    EXPECT_EQ(SegmentReader(folder_ / ".").read(place, RecordKind::Row), "x");
  }
}

TEST_F(Segments, EveryFlippedByteOfTheLastRecordIsFound) {
  SegmentOffset place;
  {
    SegmentWriter writer(folder_ / ".", "whole");
    writer.append(RecordKind::Text, "the first");
    place = writer.append(RecordKind::Row, "the last one");
  }
  const std::string whole = bytes_of("whole");
  place.file = "flipped";
  for (auto at = static_cast<size_t>(place.offset); at < whole.size(); ++at) {
    for (const int bit : {0, 7}) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      put("flipped", bytes);
      EXPECT_THROW(SegmentReader(folder_ / ".").read(place, RecordKind::Row), DataError) << at;
      EXPECT_EQ(records_of("flipped"), (std::vector<std::string>{"the first"})) << at;
    }
  }
}

TEST_F(Segments, ATailOfZerosIsATornOne) {
  put("zeros", std::string(4096, '\0'));
  EXPECT_TRUE(records_of("zeros").empty());
  EXPECT_EQ(SegmentWriter(folder_ / ".", "zeros").size_bytes(), 0);
}

TEST_F(Segments, MoreFilesThanAreKeptOpenAreRead) {
  std::vector<SegmentOffset> places;
  for (int number = 0; number < 150; ++number)
    places.push_back(SegmentWriter(folder_ / ".", "file" + std::to_string(number))
                         .append(RecordKind::Text, std::to_string(number)));
  SegmentReader reader(folder_ / ".");
  for (int turn = 0; turn < 2; ++turn)
    for (size_t number = 0; number < places.size(); ++number)
      EXPECT_EQ(reader.read(places[number], RecordKind::Text), std::to_string(number));
}

TEST_F(Segments, AFullDiskLeavesNothingOfTheRecord) {
  SegmentWriter writer(folder_ / ".", "one");
  writer.append(RecordKind::Text, "kept");
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  rlimit full = before;
  full.rlim_cur = static_cast<rlim_t>(writer.size_bytes() + 30);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &full);
  EXPECT_THROW(writer.append(RecordKind::Text, std::string(100, 'x')), IoError);
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  EXPECT_EQ(bytes_of("one").size(), static_cast<size_t>(writer.size_bytes()));
  writer.append(RecordKind::Text, "more");
  EXPECT_EQ(records_of("one"), (std::vector<std::string>{"kept", "more"}));
}

}  // namespace
}  // namespace convoy::process
