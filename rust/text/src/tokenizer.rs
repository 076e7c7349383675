// SPDX-License-Identifier: Apache-2.0
//! The tokenizer handle.

use std::collections::HashSet;

use serde::Deserialize;
use tokenizers::{PostProcessorWrapper, Tokenizer};

use crate::abi::{bytes, give, guard, take, Text};
use crate::direct::{Direct, Found};
use crate::missing_bytes::MissingBytes;
use crate::token_bytes;
use crate::tokenizer_file::{self, DeclaredToken, Loaded, Refusal};

pub struct Handle {
    tokenizer: Tokenizer,
    direct: Option<Direct>,
    missing_bytes: Option<MissingBytes>,
    special: HashSet<u32>,
    vocab_size: i64,
}

#[derive(Deserialize)]
struct Setup {
    added_tokens: Vec<DeclaredToken>,
}

#[repr(C)]
pub struct Encoding {
    ids: *mut i32,
    begins: *mut i64,
    ends: *mut i64,
    size: usize,
}

fn set_trim(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(map) => {
            for (key, value) in map {
                if key == "trim_offsets" {
                    *value = false.into();
                } else {
                    set_trim(value);
                }
            }
        }
        serde_json::Value::Array(list) => list.iter_mut().for_each(set_trim),
        _ => {}
    }
}

/// Byte-level post-processors cut leading spaces off the offsets; a loss mask needs to know whose the space is.
fn keep_whole_offsets(tokenizer: &mut Tokenizer) -> Result<(), String> {
    let Some(processor) = tokenizer.get_post_processor() else { return Ok(()) };
    let mut value = serde_json::to_value(processor).map_err(|error| error.to_string())?;
    set_trim(&mut value);
    let processor: PostProcessorWrapper = serde_json::from_value(value).map_err(|error| error.to_string())?;
    tokenizer.with_post_processor(Some(processor));
    Ok(())
}

fn create(json: &[u8], setup: &[u8]) -> Result<Handle, Refusal> {
    let setup: Setup = serde_json::from_slice(setup)
        .map_err(|error| Refusal::new("", format!("tokenizer_config.json: {error}")))?;
    // Truncation and padding are the caller's business: what the file says of them would cut rows in silence.
    let Loaded { mut tokenizer, largest_id, missing_bytes } = tokenizer_file::read(json)?;
    tokenizer_file::add_tokens(&mut tokenizer, &setup.added_tokens, "tokenizer_config.json")?;
    keep_whole_offsets(&mut tokenizer).map_err(|error| Refusal::new("post_processor", error))?;
    let added = tokenizer.get_added_tokens_decoder();
    let special = added.iter().filter(|(_, token)| token.special).map(|(id, _)| *id).collect();
    let largest_id = added.keys().copied().max().unwrap_or_default().max(largest_id);
    let direct = Direct::of(&tokenizer);
    Ok(Handle { tokenizer, direct, missing_bytes, special, vocab_size: i64::from(largest_id) + 1 })
}

impl Handle {
    /// As `token_bytes::of_all`.
    pub fn token_bytes(&self, num_ids: usize) -> Option<Vec<Vec<u8>>> {
        token_bytes::of_all(&self.tokenizer, num_ids, |id| self.special.contains(&id))
    }

    /// Special tokens by their names, where `names` has them, with their ids below `num_ids`.
    pub fn special_tokens<'a>(&self, names: &[&'a str], num_ids: usize) -> Vec<(usize, &'a str)> {
        let is_meant = |id: &u32| self.special.contains(id) && (*id as usize) < num_ids;
        let id_of =
            |name: &&'a str| Some((self.tokenizer.token_to_id(name).filter(is_meant)? as usize, *name));
        names.iter().filter_map(id_of).collect()
    }

    /// True when the decoder leaves out the space before a text's first word.
    pub fn drops_first_space(&self) -> bool {
        let Some(id) = self.tokenizer.token_to_id("\u{2581}a") else { return false };
        !self.tokenizer.decode(&[id], false).is_ok_and(|text| text.starts_with(' '))
    }

    fn encode(&self, text: &str, add_special: bool) -> Result<Found, String> {
        if let Some(missing) = &self.missing_bytes {
            missing.check(&self.tokenizer, text)?;
        }
        if let Some(direct) = &self.direct {
            if let Some(found) = direct.encode(&self.tokenizer, text, add_special)? {
                return Ok(found);
            }
        }
        let encoding = self.tokenizer.encode(text, add_special).map_err(|error| error.to_string())?;
        let places = encoding.get_offsets();
        Ok(Found {
            ids: encoding.get_ids().iter().map(|id| *id as i32).collect(),
            begins: places.iter().map(|range| range.0 as i64).collect(),
            ends: places.iter().map(|range| range.1 as i64).collect(),
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn convoy_tokenizer_create(
    json: *const u8,
    json_size: usize,
    setup: *const u8,
    setup_size: usize,
    tokenizer: *mut *mut Handle,
    path: *mut Text,
    error: *mut Text,
) -> i32 {
    guard(error, || {
        let handle = create(bytes(json, json_size), bytes(setup, setup_size)).map_err(|refusal| {
            path.write(Text::new(refusal.path));
            refusal.message
        })?;
        tokenizer.write(Box::into_raw(Box::new(handle)));
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn convoy_tokenizer_free(tokenizer: *mut Handle) {
    if !tokenizer.is_null() {
        guard(std::ptr::null_mut(), || {
            drop(Box::from_raw(tokenizer));
            Ok(())
        });
    }
}

#[no_mangle]
pub unsafe extern "C" fn convoy_tokenizer_encode(
    tokenizer: *const Handle,
    text: *const u8,
    size: usize,
    add_special: i32,
    encoding: *mut Encoding,
    error: *mut Text,
) -> i32 {
    guard(error, || {
        let text =
            std::str::from_utf8(bytes(text, size)).map_err(|error| format!("text is not UTF-8: {error}"))?;
        let found = (*tokenizer).encode(text, add_special != 0)?;
        let (ids, count) = give(found.ids);
        let (begins, _) = give(found.begins);
        let (ends, _) = give(found.ends);
        encoding.write(Encoding { ids, begins, ends, size: count });
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn convoy_encoding_free(encoding: Encoding) {
    take(encoding.ids, encoding.size);
    take(encoding.begins, encoding.size);
    take(encoding.ends, encoding.size);
}

#[no_mangle]
pub unsafe extern "C" fn convoy_tokenizer_decode(
    tokenizer: *const Handle,
    ids: *const i32,
    size: usize,
    skip_special: i32,
    text: *mut Text,
    error: *mut Text,
) -> i32 {
    guard(error, || {
        let ids: Vec<u32> = bytes(ids, size).iter().map(|id| *id as u32).collect();
        let decoded =
            (*tokenizer).tokenizer.decode(&ids, skip_special != 0).map_err(|error| error.to_string())?;
        text.write(Text::new(decoded));
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn convoy_tokenizer_id(tokenizer: *const Handle, token: *const u8, size: usize) -> i64 {
    let mut id = -1;
    guard(std::ptr::null_mut(), || {
        if let Ok(token) = std::str::from_utf8(bytes(token, size)) {
            id = (*tokenizer).tokenizer.token_to_id(token).map_or(-1, i64::from);
        }
        Ok(())
    });
    id
}

#[no_mangle]
pub unsafe extern "C" fn convoy_tokenizer_piece(
    tokenizer: *const Handle,
    id: i32,
    piece: *mut Text,
    error: *mut Text,
) -> i32 {
    guard(error, || {
        let found = u32::try_from(id).ok().and_then(|id| (*tokenizer).tokenizer.id_to_token(id));
        piece.write(Text::new(found.ok_or_else(|| format!("no token has id {id}"))?));
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn convoy_tokenizer_vocab_size(tokenizer: *const Handle) -> i64 {
    (*tokenizer).vocab_size
}

#[no_mangle]
pub unsafe extern "C" fn convoy_tokenizer_is_special(tokenizer: *const Handle, id: i32) -> i32 {
    u32::try_from(id).is_ok_and(|id| (*tokenizer).special.contains(&id)) as i32
}

/// The bytes that no token of the vocabulary spells, owned.
#[no_mangle]
pub unsafe extern "C" fn convoy_tokenizer_missing_bytes(tokenizer: *const Handle) -> Text {
    let missing = (*tokenizer).missing_bytes.as_ref();
    Text::new(missing.map_or(Vec::new(), |missing| missing.bytes().to_vec()))
}
