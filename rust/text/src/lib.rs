// SPDX-License-Identifier: Apache-2.0 Hugging Face tokenizers, Jinja chat templates and grammars of
// texts behind the C ABI of include/convoy_text.h, pictures behind the ABI of include/convoy_pictures.h, an HTTP
// server behind the ABI of include/convoy_http.h: one library, for a program has room for one copy
// of Rust's own.

mod abi;
mod budget;
mod direct;
mod generation;
mod grammar;
mod http;
mod jinja;
mod letters;
mod missing_bytes;
#[cfg(feature = "pictures")]
mod pdf_order;
#[cfg(feature = "pictures")]
mod picture;
mod schema;
mod template;
mod token_bytes;
mod tokenizer;
mod tokenizer_file;
mod tokenizer_json;
