// SPDX-License-Identifier: Apache-2.0
//
// Flags of `convoy models check`, shown by the front and read by the worker. Plain data.
#pragma once

#include <cstdint>
#include <string>

namespace convoy::settings {

struct ModelCheckFlags {
  std::string revision = "main";
  std::string template_path = {};
  int64_t seq = 512;
  int64_t batch = 1;
  std::string hardware = "cpu";
  // No flag: the memory that a training may use, in bytes; 0 = read it from this machine.
  int64_t memory_bytes = 0;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("revision", revision, "hub revision looked up in the cache");
    visit("template_path", template_path, "chat template file that replaces the model's own");
    visit("seq", seq, "tokens per row for the memory estimate").at_least(1);
    visit("batch", batch, "rows per micro-batch for the memory estimate").at_least(1);
    visit("hardware", hardware, "device for the memory estimate").one_of({"cpu", "gpu"});
  }
};

}  // namespace convoy::settings
