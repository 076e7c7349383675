// SPDX-License-Identifier: Apache-2.0 A byte-level vocabulary without some bytes, as SmolLM2
// publishes it: the bytes that no text of its makers held. The library drops what it cannot spell,
// in silence; here such a text is refused, and every other one is read.

use std::collections::HashSet;

use tokenizers::models::ModelWrapper;
use tokenizers::tokenizer::{Model, OffsetReferential, OffsetType, PreTokenizer};
use tokenizers::Tokenizer;

use crate::direct::letters_of_bytes;

pub struct MissingBytes {
    bytes: Vec<u8>,
    is_missing: [bool; 256],
    letters: HashSet<char>,
}

impl MissingBytes {
    /// None where the vocabulary has all.
    pub fn of(has: impl Fn(&str) -> bool) -> Option<MissingBytes> {
        let letters = letters_of_bytes();
        let bytes: Vec<u8> =
            (0..=255u8).filter(|byte| !has(letters[usize::from(*byte)].encode_utf8(&mut [0; 4]))).collect();
        let mut is_missing = [false; 256];
        bytes.iter().for_each(|byte| is_missing[usize::from(*byte)] = true);
        let letters = bytes.iter().map(|byte| letters[usize::from(*byte)]).collect();
        (!bytes.is_empty()).then_some(MissingBytes { bytes, is_missing, letters })
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Err names what in `text` cannot be spelled.
    pub fn check(&self, tokenizer: &Tokenizer, text: &str) -> Result<(), String> {
        let is_missing = |byte: u8| self.is_missing[usize::from(byte)];
        let found = text.bytes().any(is_missing);
        if (!found && tokenizer.get_normalizer().is_none()) || !self.is_needed(tokenizer, text)? {
            return Ok(());
        }
        let letter = text.chars().find(|letter| letter.encode_utf8(&mut [0; 4]).bytes().any(is_missing));
        let letter = letter.map_or("a letter".into(), |letter| format!("the letter U+{:04X}", letter as u32));
        Err(format!("the text holds {letter}, which the vocabulary of the tokenizer cannot spell"))
    }

    /// Outside added tokens, as the library reads the text.
    fn is_needed(&self, tokenizer: &Tokenizer, text: &str) -> Result<bool, String> {
        let added = tokenizer.get_added_vocabulary();
        let mut pieces = added.extract_and_normalize(tokenizer.get_normalizer(), text);
        if let Some(pre_tokenizer) = tokenizer.get_pre_tokenizer() {
            pre_tokenizer.pre_tokenize(&mut pieces).map_err(|error| error.to_string())?;
        }
        let splits = pieces.get_splits(OffsetReferential::Normalized, OffsetType::None);
        let is_missing = |letter: char| self.letters.contains(&letter);
        let lacks = |piece: &str| piece.chars().any(is_missing) && !is_whole_token(tokenizer, piece);
        Ok(splits.iter().any(|(piece, _, tokens)| tokens.is_none() && lacks(piece)))
    }
}

/// Such a piece is not spelled.
fn is_whole_token(tokenizer: &Tokenizer, piece: &str) -> bool {
    let ModelWrapper::BPE(model) = tokenizer.get_model() else { return false };
    model.ignore_merges && model.token_to_id(piece).is_some()
}
