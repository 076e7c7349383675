// SPDX-License-Identifier: Apache-2.0
//! Tokenizers that write each letter of a text by itself, without the library's record of where each letter comes from:
//! as bytes (GPT-2, Llama 3, Qwen, SmolLM and their kin), or as it is but for spaces (Gemma, Llama 2, Mistral). Pieces are
//! slices of the text, and most were met before. The library says what the model makes of a new piece, and does the whole
//! work for every other tokenizer.

mod cuts;
mod letters;

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, MatchKind};
use tokenizers::models::ModelWrapper;
use tokenizers::normalizers::NormalizerWrapper;
use tokenizers::pre_tokenizers::metaspace::PrependScheme;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::processors::PostProcessorWrapper;
use tokenizers::tokenizer::{Model, NormalizedString, Normalizer, SplitDelimiterBehavior};
use tokenizers::{AddedToken, Tokenizer};
use unicode_normalization_alignments::{is_nfc_quick, IsNormalized};

use cuts::{cut, cuts_of, Cut};
pub use letters::letters_of_bytes;
use letters::{is_space, mark_of, Front, Letters};

// A thread keeps a few megabytes at most.
const KEPT_PIECES: usize = 1 << 15;
const KEPT_PIECE_BYTES: usize = 64;

/// Tokens in the order of the text, and the bytes each stands for.
#[derive(Default)]
pub struct Found {
    pub ids: Vec<i32>,
    pub begins: Vec<i64>,
    pub ends: Vec<i64>,
}

impl Found {
    fn push(&mut self, id: u32, begin: usize, end: usize) {
        self.ids.push(id as i32);
        self.begins.push(begin as i64);
        self.ends.push(end as i64);
    }
}

/// Texts that the normalizer leaves as they are.
enum Unchanged {
    Every,
    Nfc,
    Ascii,
}

impl Unchanged {
    fn by(normalizer: Option<&NormalizerWrapper>) -> Option<Unchanged> {
        match normalizer {
            None => Some(Unchanged::Every),
            Some(NormalizerWrapper::NFC(_)) => Some(Unchanged::Nfc),
            Some(NormalizerWrapper::NFD(_) | NormalizerWrapper::NFKC(_) | NormalizerWrapper::NFKD(_)) => {
                Some(Unchanged::Ascii)
            }
            Some(_) => None,
        }
    }

    fn holds(&self, text: &str) -> bool {
        match self {
            Unchanged::Every => true,
            _ if text.is_ascii() => true,
            Unchanged::Nfc => is_nfc_quick(text.chars()) == IsNormalized::Yes,
            Unchanged::Ascii => false,
        }
    }
}

/// A split at spaces, where none are left.
fn cuts_nothing(pre_tokenizer: Option<&PreTokenizerWrapper>) -> bool {
    match pre_tokenizer {
        None => true,
        Some(PreTokenizerWrapper::Split(split)) => {
            split.behavior != SplitDelimiterBehavior::Removed
                && serde_json::to_value(&split.pattern).is_ok_and(|pattern| is_space(&pattern))
        }
        _ => false,
    }
}

fn spaces_of(tokenizer: &Tokenizer) -> Option<(Letters, Vec<Cut>)> {
    let pre_tokenizer = tokenizer.get_pre_tokenizer();
    let cuts_for_speed = |mark| {
        let safe = can_cut_before(tokenizer.get_model(), mark);
        safe.then_some(Cut::BeforeSpaces { mark, each: false }).into_iter().collect()
    };
    if let Some(normalizer) = tokenizer.get_normalizer() {
        let (mark, front) = mark_of(&serde_json::to_value(normalizer).ok()?)?;
        return cuts_nothing(pre_tokenizer).then(|| (Letters::Spaces { mark, front }, cuts_for_speed(mark)));
    }
    let Some(PreTokenizerWrapper::Metaspace(metaspace)) = pre_tokenizer else { return None };
    let front = match metaspace.prepend_scheme {
        PrependScheme::Never => Front::Nothing,
        PrependScheme::Always => Front::MarkOnce,
        PrependScheme::First => Front::MarkOnceAtStart,
    };
    let mark = metaspace.get_replacement();
    let cuts =
        if metaspace.split { vec![Cut::BeforeSpaces { mark, each: true }] } else { cuts_for_speed(mark) };
    Some((Letters::Spaces { mark, front }, cuts))
}

/// Added tokens that are found before all else.
struct AddedTokens {
    automaton: AhoCorasick,
    ids: Vec<u32>,
}

impl AddedTokens {
    fn new(tokens: &[(u32, &AddedToken)]) -> Option<AddedTokens> {
        let automaton = AhoCorasickBuilder::new()
            .match_kind(MatchKind::LeftmostLongest)
            .build(tokens.iter().map(|(_, token)| &token.content))
            .ok()?;
        Some(AddedTokens { automaton, ids: tokens.iter().map(|(id, _)| *id).collect() })
    }

    fn find(&self, text: &str, within: Range<usize>) -> Vec<(Range<usize>, Option<u32>)> {
        let mut parts = Vec::new();
        let mut done = within.start;
        for found in self.automaton.find_iter(&text[within.clone()]) {
            let (begin, end) = (within.start + found.start(), within.start + found.end());
            parts.push((done..begin, None));
            parts.push((begin..end, Some(self.ids[found.pattern().as_usize()])));
            done = end;
        }
        parts.push((done..within.end, None));
        parts
    }
}

fn stays(normalizer: Option<&NormalizerWrapper>, text: &str) -> bool {
    let mut normalized = NormalizedString::from(text);
    normalizer.is_none_or(|normalizer| normalizer.normalize(&mut normalized).is_ok())
        && normalized.get() == text
}

fn added_tokens(tokenizer: &Tokenizer) -> Option<Vec<AddedTokens>> {
    let decoder = tokenizer.get_added_tokens_decoder();
    // Tokens that are no plain text need the letters around them.
    let is_plain = |token: &AddedToken| {
        !(token.single_word || token.lstrip || token.rstrip || token.content.is_empty())
            && (!token.normalized || stays(tokenizer.get_normalizer(), &token.content))
    };
    if !decoder.values().all(is_plain) || tokenizer.get_encode_special_tokens() {
        return None;
    }
    // The library looks for tokens that are not normalized first.
    let mut searches = Vec::new();
    for normalized in [false, true] {
        let tokens: Vec<_> = decoder
            .iter()
            .filter(|(_, token)| token.normalized == normalized)
            .map(|(id, token)| (*id, token))
            .collect();
        if !tokens.is_empty() {
            searches.push(AddedTokens::new(&tokens)?);
        }
    }
    Some(searches)
}

/// The tokens that every text gets in front and behind.
struct Frame {
    front: Vec<u32>,
    behind: Vec<u32>,
}

impl Frame {
    fn of(tokenizer: &Tokenizer) -> Option<Frame> {
        if !tokenizer.get_post_processor().is_none_or(adds_the_same) {
            return None;
        }
        let plain = tokenizer.encode("a", false).ok()?;
        let framed = tokenizer.encode("a", true).ok()?;
        let inside = plain.get_ids();
        let all = framed.get_ids();
        let front = (0..=all.len().checked_sub(inside.len())?)
            .find(|from| !inside.is_empty() && all[*from..].starts_with(inside))?;
        let (front, behind) = (all[..front].to_vec(), all[front + inside.len()..].to_vec());
        Some(Frame { front, behind })
    }
}

fn adds_the_same(processor: &PostProcessorWrapper) -> bool {
    match processor {
        PostProcessorWrapper::ByteLevel(bytes) => !bytes.trim_offsets,
        PostProcessorWrapper::Template(_) => true,
        PostProcessorWrapper::Sequence(sequence) => sequence.as_ref().iter().all(adds_the_same),
        _ => false,
    }
}

/// A BPE model makes the same of a piece each time, unless it drops merges by chance.
fn draws_nothing(model: &ModelWrapper) -> bool {
    matches!(model, ModelWrapper::BPE(bpe) if bpe.dropout.is_none_or(|chance| chance == 0.0))
}

/// Whether a model sees the same with and without cuts in front of spaces: no token, and so no merge, has a mark behind
/// another letter.
fn can_cut_before(model: &ModelWrapper, mark: char) -> bool {
    let ModelWrapper::BPE(bpe) = model else { return false };
    let depends_on_the_whole =
        bpe.ignore_merges || bpe.continuing_subword_prefix.is_some() || bpe.end_of_word_suffix.is_some();
    let vocabulary = bpe.get_vocab();
    !depends_on_the_whole
        && vocabulary.contains_key(mark.encode_utf8(&mut [0; 4]))
        && vocabulary.keys().all(|token| !token.trim_start_matches(mark).contains(mark))
}

#[derive(Clone, Copy)]
struct PieceToken {
    id: u32,
    begin: u32,
    end: u32,
}

/// What the calling thread has met of one tokenizer.
#[derive(Default)]
struct Pieces {
    of: usize,
    known: HashMap<Box<str>, Box<[PieceToken]>, ahash::RandomState>,
}

thread_local! {
    static PIECES: RefCell<Pieces> = RefCell::default();
}

pub struct Direct {
    number: usize,
    unchanged: Unchanged,
    added: Vec<AddedTokens>,
    letters: Letters,
    cuts: Vec<Cut>,
    frame: Frame,
}

impl Direct {
    /// None for every other tokenizer.
    pub fn of(tokenizer: &Tokenizer) -> Option<Direct> {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        if !draws_nothing(tokenizer.get_model()) {
            return None;
        }
        let (unchanged, (letters, cuts)) = match tokenizer.get_pre_tokenizer().and_then(cuts_of) {
            Some(cuts) => {
                (Unchanged::by(tokenizer.get_normalizer())?, (Letters::Bytes(letters_of_bytes()), cuts))
            }
            None => (Unchanged::Every, spaces_of(tokenizer)?),
        };
        Some(Direct {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            unchanged,
            added: added_tokens(tokenizer)?,
            letters,
            cuts,
            frame: Frame::of(tokenizer)?,
        })
    }

    /// None for a text that the normalizer may change.
    pub fn encode(
        &self,
        tokenizer: &Tokenizer,
        text: &str,
        add_special: bool,
    ) -> Result<Option<Found>, String> {
        if !self.unchanged.holds(text) {
            return Ok(None);
        }
        let mut found = Found::default();
        let around = |ids: &[u32], found: &mut Found| ids.iter().for_each(|id| found.push(*id, 0, 0));
        if add_special {
            around(&self.frame.front, &mut found);
        }
        PIECES.with_borrow_mut(|pieces| {
            if pieces.of != self.number {
                *pieces = Pieces { of: self.number, ..Pieces::default() };
            }
            for (part, added) in self.parts(text) {
                if let Some(id) = added {
                    found.push(id, part.start, part.end);
                    continue;
                }
                let has_front = self.letters.has_front(&text[part.clone()], part.start);
                cut(&self.cuts, part.start, &text[part.clone()], &mut |start, piece| {
                    let has_front = has_front && start == part.start;
                    self.add_piece(tokenizer, pieces, (start, piece, has_front), &mut found)
                })?;
            }
            Ok::<(), String>(())
        })?;
        if add_special {
            around(&self.frame.behind, &mut found);
        }
        Ok(Some(found))
    }

    fn parts(&self, text: &str) -> Vec<(Range<usize>, Option<u32>)> {
        let mut parts = vec![(0..text.len(), None)];
        for added in &self.added {
            parts = parts
                .into_iter()
                .flat_map(|(part, id)| if id.is_some() { vec![(part, id)] } else { added.find(text, part) })
                .collect();
        }
        parts
    }

    fn add_piece(
        &self,
        tokenizer: &Tokenizer,
        pieces: &mut Pieces,
        (start, piece, has_front): (usize, &str, bool),
        found: &mut Found,
    ) -> Result<(), String> {
        let mut add = |tokens: &[PieceToken]| {
            for token in tokens {
                found.push(token.id, start + token.begin as usize, start + token.end as usize);
            }
        };
        if let Some(tokens) = pieces.known.get(piece).filter(|_| !has_front) {
            add(tokens);
            return Ok(());
        }
        let tokens = self.tokens_of(tokenizer, piece, has_front)?;
        add(&tokens);
        if piece.len() <= KEPT_PIECE_BYTES && !has_front {
            if pieces.known.len() >= KEPT_PIECES {
                pieces.known.clear();
            }
            pieces.known.insert(piece.into(), tokens.into());
        }
        Ok(())
    }

    /// What the model makes of one piece. A token of a part of a letter stands for the whole letter.
    fn tokens_of(
        &self,
        tokenizer: &Tokenizer,
        piece: &str,
        has_front: bool,
    ) -> Result<Vec<PieceToken>, String> {
        let (written, places) = self.letters.write(piece, has_front);
        let tokens = tokenizer.get_model().tokenize(&written).map_err(|error| error.to_string())?;
        Ok(tokens
            .iter()
            .map(|token| PieceToken {
                id: token.id,
                begin: places[token.offsets.0].0,
                end: places[token.offsets.1 - 1].1,
            })
            .collect())
    }
}
