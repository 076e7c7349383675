// SPDX-License-Identifier: Apache-2.0
//
// The body of a commit request: lines of JSON, a header, then one for each file. The content of
// small files is within it in base64 (RFC 4648); a line is made when it is sent, so that memory
// holds one file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/data/hub/push_file.h"

namespace convoy::hub {

std::string base64(std::string_view bytes);

class CommitBody {
 public:
  CommitBody(const std::string& summary, const std::string& description);

  // `file` must outlive the body, and must not change: a changed size is a DataError of read().
  void add_file(const PushFile& file);
  // Names the content of a file that the hub's store of large files has.
  void add_large_file(const PushFile& file, const std::string& sha256);

  int64_t size_bytes() const { return size_bytes_; }
  // As http::Upload::read.
  size_t read(int64_t begin, char* into, size_t most);

 private:
  struct Line {
    int64_t begin = 0;  // offset in the body
    std::string head = {};
    const PushFile* file = nullptr;  // its bytes follow the head; null: the head is the line
  };

  void add(std::string head, const PushFile* file);
  std::string line_text(const Line& line) const;

  std::vector<Line> lines_;
  int64_t size_bytes_ = 0;
  size_t made_line_ = SIZE_MAX;  // index of the line that is in made_text_
  std::string made_text_;
};

}  // namespace convoy::hub
