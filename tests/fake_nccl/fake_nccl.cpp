// SPDX-License-Identifier: Apache-2.0
//
// A libnccl.so.2 that has a version and nothing else.

extern "C" int ncclGetVersion(int* version) {
  *version = 22809;  // 2.28.9
  return 0;
}
