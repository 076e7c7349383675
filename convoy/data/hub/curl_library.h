// SPDX-License-Identifier: Apache-2.0
//
// libcurl, opened when something is downloaded and not before: linked, it and what it brings would
// cost every start of `convoy` milliseconds.
#pragma once

#include <curl/curl.h>

namespace convoy::hub {

// The functions that are used. libcurl stays loaded until the process ends.
class CurlLibrary {
 public:
  CurlLibrary();  // once in a process, before its threads. Throws ConfigError
  CurlLibrary(const CurlLibrary&) = delete;
  CurlLibrary& operator=(const CurlLibrary&) = delete;

  decltype(&::curl_easy_init) easy_init = nullptr;
  decltype(&::curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&::curl_easy_reset) easy_reset = nullptr;
  decltype(&::curl_easy_setopt) easy_setopt = nullptr;
  decltype(&::curl_easy_getinfo) easy_getinfo = nullptr;
  decltype(&::curl_easy_perform) easy_perform = nullptr;
  decltype(&::curl_easy_strerror) easy_strerror = nullptr;
  decltype(&::curl_slist_append) slist_append = nullptr;
  decltype(&::curl_slist_free_all) slist_free_all = nullptr;

 private:
  template <class Function>
  void find(const char* symbol, Function& function);

  void* library_ = nullptr;
};

}  // namespace convoy::hub
