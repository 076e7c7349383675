// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/nearby_files.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "files/temporary_folder.h"

namespace convoy {
namespace {

using convoy::testing::TemporaryFolder;

std::string hint_for_missing(const std::filesystem::path& path) {
  return unreadable_file_hint(path, ENOENT);
}

TEST(NearbyFiles, ThoseOfTheSameKindAreNamedTheNearestSpellingFirst) {
  const TemporaryFolder folder;
  for (const char* const name :
       {"har.yaml", "sums.yaml", "sumz.yml", "rows.jsonl", ".hidden.yaml", "sums"})
    write_file_atomic(folder / name, "a: 1\n");
  std::filesystem::create_directory(folder / "folder.yaml");
  const std::string place = folder.path().string();
  EXPECT_EQ(hint_for_missing(folder / "sum.yaml"), place + " holds sums.yaml, sumz.yml, har.yaml");
  EXPECT_EQ(hint_for_missing(folder / "rows.csv"), place + " holds rows.jsonl");
  EXPECT_EQ(hint_for_missing(folder / "picture.svg"), place + " holds no file that ends in .svg");
  try {
    read_file(folder / "harr.yaml");
    FAIL();
  } catch (const DataError& error) {
    EXPECT_NE(error.sentence().find("(" + place + " holds har.yaml, "), std::string::npos)
        << error.sentence();
  }
}

TEST(NearbyFiles, FiveAreNamedAndTheOthersCounted) {
  const TemporaryFolder folder;
  for (const char letter : std::string("abcdefg"))
    write_file_atomic(folder / (std::string(1, letter) + ".yaml"), "");
  EXPECT_EQ(hint_for_missing(folder / "x.yaml"),
            folder.path().string() +
                " holds a.yaml, b.yaml, c.yaml, d.yaml, e.yaml and 2 "
                "more");
}

TEST(NearbyFiles, ANameWithoutAnEndingFindsFilesAndFoldersOfThatName) {
  const TemporaryFolder folder;
  write_file_atomic(folder / "sums.yaml", "");
  write_file_atomic(folder / "adapter/adapter_config.json", "{}");
  EXPECT_EQ(hint_for_missing(folder / "sums"), folder.path().string() + " holds sums.yaml");
  EXPECT_EQ(hint_for_missing(folder / "adaptr"), folder.path().string() + " holds adapter");
  EXPECT_EQ(hint_for_missing(folder / "quite-another"),
            folder.path().string() + " holds no such file");
}

TEST(NearbyFiles, AFolderThatIsNotThereIsSaid) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "configs");
  const std::string place = folder.path().string();
  EXPECT_EQ(hint_for_missing(folder / "config/run.yaml"),
            "there is no folder `" + place + "/config`, did you mean `configs`?");
  EXPECT_EQ(hint_for_missing(folder / "none/deep/run.yaml"),
            "there is no folder `" + place + "/none`");
}

TEST(NearbyFiles, OtherReasonsHaveOtherWaysOut) {
  EXPECT_EQ(unreadable_file_hint("a.yaml", EACCES), "run this as a user who may read it");
  EXPECT_NE(unreadable_file_hint("a.yaml", EMFILE).find("ulimit -n"), std::string::npos);
}

TEST(NearbyFiles, FoldersAreThoseThatHoldTheFile) {
  const TemporaryFolder folder;
  write_file_atomic(folder / "tally-3m/config.json", "{}");
  write_file_atomic(folder / "notes/readme.txt", "");
  const std::string found = folder.path().string() + " holds tally-3m";
  EXPECT_EQ(missing_folder_hint(folder / "tally", "config.json", "none"), found);
  EXPECT_EQ(missing_folder_hint(folder / "tally/", "config.json", "none"), found);
  EXPECT_EQ(missing_folder_hint(folder / "tally", "adapter_config.json", "none"), "none");
}

}  // namespace
}  // namespace convoy
