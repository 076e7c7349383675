// SPDX-License-Identifier: Apache-2.0
//
// The parts of a Tokenizer, for the sources of this layer alone.
#pragma once

#include <optional>
#include <string>

#include "convoy/data/text/rust_handles.h"
#include "convoy/data/text/tokenizer.h"

namespace convoy::text {

struct Tokenizer::State {
  RustTokenizer handle;
  std::string file;
  std::optional<int32_t> bos;
  std::optional<int32_t> eos;
  std::optional<int32_t> pad;
  bool adds_bos = false;
  bool adds_eos = false;
  std::string content_hash;
};

}  // namespace convoy::text
