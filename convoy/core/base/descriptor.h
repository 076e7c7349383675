// SPDX-License-Identifier: Apache-2.0
//
// A file descriptor that is closed with its owner.
#pragma once

#include <utility>

namespace convoy {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return number_; }
  bool open() const { return number_ >= 0; }
  void reset();

 private:
  int number_ = -1;
};

struct Pipe {
  Descriptor read_end;
  Descriptor write_end;
};
Pipe make_pipe();  // close-on-exec. Throws IoError

}  // namespace convoy
