// SPDX-License-Identifier: Apache-2.0
//
// C ABI of the Rust library: SVG text as PNG and PDF, with the fonts of the library alone. Errors as in convoy_text.h.
#pragma once

#include "convoy_text.h"

#ifdef __cplusplus
extern "C" {
#endif

// One pixel of SVG is one of PNG.
int convoy_picture_png(const uint8_t* svg, size_t size, ConvoyText* picture, ConvoyText* error);
// One page, of 1/96 inch to a pixel; its text is text.
int convoy_picture_pdf(const uint8_t* svg, size_t size, ConvoyText* picture, ConvoyText* error);
// UTF-8: each letter of the SVG text, once, that both would draw as a box.
int convoy_picture_unknown_letters(const uint8_t* svg, size_t size, ConvoyText* letters,
                                   ConvoyText* error);

#ifdef __cplusplus
}
#endif
