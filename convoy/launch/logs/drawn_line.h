// SPDX-License-Identifier: Apache-2.0
//
// Output of one stream as a terminal would show it: whole lines, of which a carriage return redraws
// the text. Fed with chunks that are cut anywhere.
#pragma once

#include <string>
#include <string_view>

namespace convoy::launch {

// Returns the text of `line` after its last redraw ('\r'). `line` contains no '\n'.
std::string_view last_drawn(std::string_view line);

// One line of output, received in pieces. Text beyond `max_bytes` is dropped until a redraw.
class DrawnLine {
 public:
  explicit DrawnLine(size_t max_bytes = std::string::npos) : max_bytes_(max_bytes) {}

  void append(std::string_view piece);  // no '\n' in it
  const std::string& text() const { return text_; }
  bool redrawn() const { return redrawn_; }  // the line contains a '\r'
  void clear();
  void keep_from(size_t position) { text_.erase(0, position); }

 private:
  size_t max_bytes_;
  std::string text_;
  bool redrawn_ = false;
  bool at_line_start_ = false;  // after a '\r': new text replaces the old text
};

// The lines of one stream. A line longer than kLongestLineBytes is passed on in pieces.
class DrawnLines {
 public:
  static constexpr size_t kLongestLineBytes = 64 << 10;

  // Calls on_line(std::string_view) for every line that ends in `bytes`.
  template <typename OnLine>
  void take(std::string_view bytes, OnLine&& on_line);
  // Calls on_line for the unfinished line, if there is one.
  template <typename OnLine>
  void finish(OnLine&& on_line);

  const DrawnLine& unfinished() const { return line_; }

 private:
  // Number of bytes of a too long line that are passed on now. They end between two characters.
  size_t cut_position() const;

  DrawnLine line_;
  bool begun_ = false;  // an unfinished line has begun, even if its text is empty
  bool cut_ = false;    // a part of this line was passed on already
};

template <typename OnLine>
void DrawnLines::take(std::string_view bytes, OnLine&& on_line) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    if (end == std::string_view::npos) {
      line_.append(piece);
      begun_ = true;
      if (line_.text().size() < kLongestLineBytes) return;
      const size_t cut = cut_position();
      on_line(std::string_view(line_.text()).substr(0, cut));
      line_.keep_from(cut);
      cut_ = true;
      return;
    }
    if (begun_) {
      line_.append(piece);
      if (!cut_ || !line_.text().empty()) on_line(std::string_view(line_.text()));
      line_.clear();
      begun_ = cut_ = false;
    } else {
      on_line(last_drawn(piece));
    }
    bytes.remove_prefix(end + 1);
  }
}

template <typename OnLine>
void DrawnLines::finish(OnLine&& on_line) {
  if (begun_ && !line_.text().empty()) on_line(std::string_view(line_.text()));
  line_.clear();
  begun_ = cut_ = false;
}

}  // namespace convoy::launch
