// SPDX-License-Identifier: Apache-2.0
//
// For tests of the router: a folder for logs, and a console that is a file in memory or a pipe.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "convoy/core/base/descriptor.h"
#include "convoy/core/base/files.h"
#include "convoy/launch/logs/log_router.h"

namespace convoy::launch {

inline constexpr Stream kOut = Stream::Output;
inline constexpr Stream kErr = Stream::Errors;

class RouterTest : public ::testing::Test {
 protected:
  RouterTest()
      : output_(::memfd_create("output", MFD_CLOEXEC)),
        errors_(::memfd_create("errors", MFD_CLOEXEC)),
        before_(::signal(SIGPIPE, SIG_IGN)) {
    std::string name = (std::filesystem::temp_directory_path() / "convoy-test-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~RouterTest() override {
    ::signal(SIGPIPE, before_);
    std::filesystem::remove_all(folder_);
  }

  LogOptions options(int ranks) const {
    LogOptions made;
    made.num_local_ranks = ranks;
    made.console_output = output_.get();
    made.console_errors = errors_.get();
    return made;
  }
  LogOptions with_files(int ranks, LogLayout layout) const {
    LogOptions made = options(ranks);
    made.layout = layout;
    made.folder = folder_;
    return made;
  }

  static std::string all_of(const Descriptor& console) {
    struct stat status {};
    EXPECT_EQ(::fstat(console.get(), &status), 0);
    std::string text(static_cast<size_t>(status.st_size), '\0');
    EXPECT_EQ(::pread(console.get(), text.data(), text.size(), 0), status.st_size);
    return text;
  }
  std::string output() const { return all_of(output_); }
  std::string errors() const { return all_of(errors_); }
  std::string file(const std::string& name) const { return read_file(folder_ / name); }
  bool exists(const std::string& name) const { return std::filesystem::exists(folder_ / name); }

  static std::vector<std::string> lines(const std::string& text) {
    std::vector<std::string> found;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) found.push_back(line);
    return found;
  }

  Descriptor output_;
  Descriptor errors_;
  std::filesystem::path folder_;

 private:
  sighandler_t before_;
};

}  // namespace convoy::launch
