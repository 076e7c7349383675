// SPDX-License-Identifier: Apache-2.0
//! The bytes that each token adds to a text, for grammars.

use std::collections::HashMap;

use tokenizers::{DecoderWrapper, Tokenizer};

/// How a decoder turns the pieces of a vocabulary into bytes.
#[derive(Clone, Copy, PartialEq)]
enum Spelling {
    /// GPT-2's letters, one for each byte.
    ByteLetters,
    /// Letters, this one for a space, and `<0xE2>` for a byte.
    Letters { space: char, has_bytes: bool },
}

fn parts(decoder: &DecoderWrapper) -> Vec<&DecoderWrapper> {
    match decoder {
        DecoderWrapper::Sequence(list) => list.get_decoders().iter().flat_map(parts).collect(),
        other => vec![other],
    }
}

/// The letter that a Replace decoder turns into a space. Its pattern can only be read from its JSON.
fn replaced_letter(decoder: &DecoderWrapper) -> Option<char> {
    let value = serde_json::to_value(decoder).ok()?;
    if value["content"] != " " {
        return None;
    }
    let mut letters = value["pattern"]["String"].as_str()?.chars();
    let letter = letters.next()?;
    letters.next().is_none().then_some(letter)
}

fn spelling(tokenizer: &Tokenizer) -> Option<Spelling> {
    let mut space = None;
    let mut has_bytes = false;
    for part in parts(tokenizer.get_decoder()?) {
        match part {
            DecoderWrapper::ByteLevel(_) => return Some(Spelling::ByteLetters),
            DecoderWrapper::ByteFallback(_) => has_bytes = true,
            DecoderWrapper::Metaspace(metaspace) => space = Some(metaspace.get_replacement()),
            DecoderWrapper::Replace(_) => space = space.or_else(|| replaced_letter(part)),
            _ => {}
        }
    }
    (space.is_some() || has_bytes).then_some(Spelling::Letters { space: space.unwrap_or(' '), has_bytes })
}

fn bytes_by_letter() -> HashMap<char, u8> {
    let mut next = 0x100;
    let mut bytes = HashMap::new();
    for byte in 0..=255u8 {
        let prints = matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
        let code = if prints { u32::from(byte) } else { next };
        next += u32::from(!prints);
        bytes.extend(char::from_u32(code).map(|letter| (letter, byte)));
    }
    bytes
}

fn fallback_byte(piece: &str) -> Option<u8> {
    let digits = piece.strip_prefix("<0x")?.strip_suffix('>')?;
    (digits.len() == 2).then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

/// The bytes of each of the first `num_ids` tokens; empty for an id without a token, for a special
/// token, and for a token that the decoder writes in another way than its piece says. `None`: the
/// decoder's pieces do not say their bytes.
pub fn of_all(
    tokenizer: &Tokenizer,
    num_ids: usize,
    is_special: impl Fn(u32) -> bool,
) -> Option<Vec<Vec<u8>>> {
    let spelling = spelling(tokenizer)?;
    let letters = bytes_by_letter();
    let added = tokenizer.get_added_tokens_decoder();
    let anchor = tokenizer.token_to_id("a");
    let anchor_text = anchor.map(|id| tokenizer.decode(&[id], false).unwrap_or_default());
    let bytes_of = |id: u32| -> Option<Vec<u8>> {
        if is_special(id) {
            return None;
        }
        let piece = tokenizer.id_to_token(id)?;
        let bytes = match spelling {
            _ if added.contains_key(&id) => piece.into_bytes(),
            Spelling::ByteLetters => {
                piece.chars().map(|letter| letters.get(&letter).copied()).collect::<Option<Vec<u8>>>()?
            }
            Spelling::Letters { has_bytes: true, .. } if fallback_byte(&piece).is_some() => {
                vec![fallback_byte(&piece)?]
            }
            Spelling::Letters { space, .. } => piece.replace(space, " ").into_bytes(),
        };
        // The decoder itself has the last word, behind a letter: some decoders treat a text's first
        // token in another way. Parts of letters cannot be asked.
        if let (Some(anchor), Some(before), Ok(text)) = (anchor, &anchor_text, std::str::from_utf8(&bytes)) {
            let decoded = tokenizer.decode(&[anchor, id], false).ok()?;
            if decoded.strip_prefix(before.as_str()) != Some(text) {
                return None;
            }
        }
        Some(bytes)
    };
    Some((0..num_ids).map(|id| bytes_of(id as u32).unwrap_or_default()).collect())
}
