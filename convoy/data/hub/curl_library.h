// SPDX-License-Identifier: Apache-2.0
//
// libcurl, loaded only for a download: linking it and its dependencies would add milliseconds to
// every start of `convoy`.
#pragma once

#include <curl/curl.h>

namespace convoy::hub {

// The functions in use. libcurl stays loaded until the process ends.
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
