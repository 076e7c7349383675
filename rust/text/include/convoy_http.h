// SPDX-License-Identifier: Apache-2.0
//
// C ABI of the Rust library: a server for HTTP/1.1. Errors as in convoy_text.h.
#pragma once

#include "convoy_text.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ConvoyHttpServer ConvoyHttpServer;
// A request that came whole, and the place of its answer. Any thread, one at a time.
typedef struct ConvoyHttpExchange ConvoyHttpExchange;

typedef struct {
  size_t body_bytes;        // most bytes of a request; a larger one is answered with 413
  size_t pending_bytes;     // most unread bytes of an answer; beyond them its client counts as gone
  size_t clients;           // connections at a time; for a further one the oldest without an answer under way is closed
  uint64_t request_ms;      // in which a request must have come whole
  uint64_t silence_ms;      // for which a client may take nothing of its answer
} ConvoyHttpLimits;

typedef struct {
  const uint8_t* data;
  size_t size;
} ConvoyHttpBytes;

// On a thread of the server, which it must not hold up. Gets the exchange: convoy_http_end frees it.
typedef void (*ConvoyHttpHandler)(void* context, ConvoyHttpExchange* exchange);

typedef struct ConvoyHttpError ConvoyHttpError;
// On a thread of the server. Gives the answer to a request that does not come to the handler, because it is too large, too
// slow, or no HTTP, by one call of convoy_http_put_error.
typedef void (*ConvoyHttpErrorWriter)(void* context, uint16_t status, const uint8_t* why, size_t why_size, ConvoyHttpError* error);

// Listens at once, and serves on two threads of its own. `host`: an address or a name of this machine. Port 0: any free one.
int convoy_http_start(const uint8_t* host, size_t host_size, uint16_t port, ConvoyHttpLimits limits,
                      ConvoyHttpHandler handler, ConvoyHttpErrorWriter error_writer, void* context, ConvoyHttpServer** server,
                      ConvoyText* error);
uint16_t convoy_http_port(const ConvoyHttpServer* server);
// Accepts nothing more, waits up to `wait_ms` for the answers that are under way, and frees the server.
void convoy_http_stop(ConvoyHttpServer* server, uint64_t wait_ms);

// Valid until convoy_http_end.
ConvoyHttpBytes convoy_http_method(const ConvoyHttpExchange* exchange);
ConvoyHttpBytes convoy_http_target(const ConvoyHttpExchange* exchange);  // path and query, as sent
ConvoyHttpBytes convoy_http_header(const ConvoyHttpExchange* exchange, const uint8_t* name, size_t size);  // the first; empty: none
ConvoyHttpBytes convoy_http_body(const ConvoyHttpExchange* exchange);

// `headers`: lines `name: value`. Once; without it the answer is a 500.
void convoy_http_begin(ConvoyHttpExchange* exchange, uint16_t status, const uint8_t* headers, size_t size);
// A part of the body, sent at once. 0: the client is gone.
int convoy_http_send(ConvoyHttpExchange* exchange, const uint8_t* data, size_t size);
int convoy_http_is_open(const ConvoyHttpExchange* exchange);
void convoy_http_end(ConvoyHttpExchange* exchange);

void convoy_http_put_error(ConvoyHttpError* error, const uint8_t* content_type, size_t type_size, const uint8_t* body, size_t body_size);

#ifdef __cplusplus
}
#endif
