// SPDX-License-Identifier: Apache-2.0
//! How a model sees the letters of a text: as bytes, or with a mark for spaces.

/// What stands in front of a part of the text, between added tokens, where spaces are written as a mark.
#[derive(Clone, Copy, PartialEq)]
pub enum Front {
    Nothing,
    Mark,
    /// Unless the part begins with one.
    MarkOnce,
    /// Unless it begins with one, and only where the text begins.
    MarkOnceAtStart,
}

/// How the model sees a text.
pub enum Letters {
    Bytes([char; 256]),
    Spaces { mark: char, front: Front },
}

impl Letters {
    pub fn has_front(&self, part: &str, start: usize) -> bool {
        let Letters::Spaces { mark, front } = self else { return false };
        let begins_with_mark = part.starts_with([' ', *mark]);
        match front {
            Front::Nothing => false,
            Front::Mark => true,
            Front::MarkOnce => !begins_with_mark,
            Front::MarkOnceAtStart => !begins_with_mark && start == 0,
        }
    }

    /// `piece` as the model sees it, and for each byte of that where the letter lies that it stands for.
    pub fn write(&self, piece: &str, has_front: bool) -> (String, Vec<(u32, u32)>) {
        let mut written = String::with_capacity(2 * piece.len());
        let mut places = Vec::with_capacity(2 * piece.len());
        for (at, letter) in piece.char_indices() {
            let place = (at as u32, (at + letter.len_utf8()) as u32);
            match self {
                Letters::Bytes(letters) => {
                    for byte in &piece.as_bytes()[at..at + letter.len_utf8()] {
                        written.push(letters[*byte as usize]);
                    }
                }
                Letters::Spaces { mark, .. } => {
                    if at == 0 && has_front {
                        written.push(*mark);
                    }
                    written.push(if letter == ' ' { *mark } else { letter });
                }
            }
            places.resize(written.len(), place);
        }
        (written, places)
    }
}

/// The only letter of a text.
fn only_letter(said: &serde_json::Value) -> Option<char> {
    let mut letters = said.as_str()?.chars();
    letters.next().filter(|_| letters.next().is_none())
}

pub fn is_space(pattern: &serde_json::Value) -> bool {
    pattern["String"] == " "
}

/// The mark that a normalizer of SentencePiece's kind writes for spaces.
pub fn mark_of(normalizer: &serde_json::Value) -> Option<(char, Front)> {
    if normalizer["type"] == "Replace" && is_space(&normalizer["pattern"]) {
        return Some((only_letter(&normalizer["content"])?, Front::Nothing));
    }
    let [prepend, replace] = normalizer["normalizers"].as_array()?.as_slice() else { return None };
    let (mark, _) = mark_of(replace)?;
    (prepend["type"] == "Prepend" && only_letter(&prepend["prepend"]) == Some(mark))
        .then_some((mark, Front::Mark))
}

/// The letter that stands for each byte; from GPT-2's encoder.py.
pub fn letters_of_bytes() -> [char; 256] {
    let mut next = 256;
    std::array::from_fn(|byte| match byte as u8 {
        b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF => byte as u8 as char,
        _ => {
            next += 1;
            char::from_u32(next - 1).unwrap_or_default()
        }
    })
}
