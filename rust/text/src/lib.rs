// SPDX-License-Identifier: Apache-2.0
//! Hugging Face tokenizers and Jinja chat templates behind the C ABI of include/convoy_text.h.

mod abi;
mod budget;
mod direct;
mod generation;
mod jinja;
mod template;
mod tokenizer;
mod tokenizer_file;
mod tokenizer_json;
