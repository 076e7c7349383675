// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/pictures/drawing.h"

#include <convoy_pictures.h>

#include "convoy/core/base/error.h"

namespace convoy::pictures {
namespace {

std::string take(ConvoyText text) {
  std::string copy(reinterpret_cast<const char*>(text.data), text.size);
  convoy_text_free(text);
  return copy;
}

auto* function_of(Drawn what) {
  switch (what) {
    case Drawn::Png:
      return convoy_picture_png;
    case Drawn::Pdf:
      return convoy_picture_pdf;
    case Drawn::UnknownLetters:
      break;
  }
  return convoy_picture_unknown_letters;
}

}  // namespace

bool has_drawing() { return true; }

std::string drawn(Drawn what, const std::string& svg) {
  ConvoyText text{}, error{};
  const int status =
      function_of(what)(reinterpret_cast<const uint8_t*>(svg.data()), svg.size(), &text, &error);
  CONVOY_INVARIANT(status == 0, "a figure was not drawn: {}", take(error));
  return take(text);
}

}  // namespace convoy::pictures
