// SPDX-License-Identifier: Apache-2.0
//
// Decoders for decode.h, of blocks whose codes are looked up in tables (iq*), have three values
// (tq*) or are floats of four bits (mxfp4).
#pragma once

#include <cstdint>

namespace convoy::gguf {

void decode_iq2_xxs(const uint8_t* block, float* out);
void decode_iq2_xs(const uint8_t* block, float* out);
void decode_iq2_s(const uint8_t* block, float* out);
void decode_iq3_xxs(const uint8_t* block, float* out);
void decode_iq3_s(const uint8_t* block, float* out);
void decode_iq1_s(const uint8_t* block, float* out);
void decode_iq1_m(const uint8_t* block, float* out);
void decode_iq4_nl(const uint8_t* block, float* out);
void decode_iq4_xs(const uint8_t* block, float* out);
void decode_tq1_0(const uint8_t* block, float* out);
void decode_tq2_0(const uint8_t* block, float* out);
void decode_mxfp4(const uint8_t* block, float* out);

}  // namespace convoy::gguf
