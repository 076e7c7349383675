// SPDX-License-Identifier: Apache-2.0
//
// The table of one instruction set. The file is included in the namespace of that instruction set.

extern const TileFillers kTileFillers;
const TileFillers kTileFillers = {
    {{fill_tile<Precision::Exact, false>, fill_tile<Precision::Exact, true>},
     {fill_tile<Precision::Fast, false>, fill_tile<Precision::Fast, true>}}};
