// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/hub/curl_library.h"

#include <dlfcn.h>

#include "convoy/core/base/error.h"

namespace convoy::hub {

CurlLibrary::CurlLibrary() {
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"}) {
    library_ = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library_ != nullptr) break;
  }
  if (library_ == nullptr)
    throw ConfigError(
        "downloading needs libcurl.so.4, which cannot be loaded",
        {.hint = "install the package libcurl4 (Debian, Ubuntu) or libcurl (others)"});
  decltype(&::curl_global_init) global_init = nullptr;
  find("curl_global_init", global_init);
  find("curl_easy_init", easy_init);
  find("curl_easy_cleanup", easy_cleanup);
  find("curl_easy_reset", easy_reset);
  find("curl_easy_setopt", easy_setopt);
  find("curl_easy_getinfo", easy_getinfo);
  find("curl_easy_perform", easy_perform);
  find("curl_easy_strerror", easy_strerror);
  find("curl_slist_append", slist_append);
  find("curl_slist_free_all", slist_free_all);
  if (global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
    throw ConfigError("libcurl could not be set up", {.hint = "reinstall libcurl and OpenSSL"});
}

// Never unloaded: its TLS library leaves handlers that run when the process ends.
template <class Function>
void CurlLibrary::find(const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library_, symbol));
  if (function == nullptr)
    throw ConfigError(fmt::format("libcurl.so.4 has no {}", symbol),
                      {.hint = "install a newer libcurl"});
}

}  // namespace convoy::hub
