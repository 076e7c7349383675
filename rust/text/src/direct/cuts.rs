// SPDX-License-Identifier: Apache-2.0
//! How a pre-tokenizer cuts a text into pieces.

use std::ops::Range;

use tokenizers::pre_tokenizers::split::Split;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::tokenizer::SplitDelimiterBehavior;
use tokenizers::utils::SysRegex;

/// Of ByteLevel with `use_regex`; from GPT-2's encoder.py.
const GPT2_PIECES: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// One step of the pre-tokenizer: where it cuts, and which parts it keeps.
pub enum Cut {
    Regex {
        regex: SysRegex,
        keeps_matches: bool,
        keeps_gaps: bool,
    },
    Digits {
        each: bool,
    },
    /// In front of each space, or of each run of them.
    BeforeSpaces {
        mark: char,
        each: bool,
    },
}

impl Cut {
    fn all(pattern: &str) -> Option<Cut> {
        Some(Cut::Regex { regex: SysRegex::new(pattern).ok()?, keeps_matches: true, keeps_gaps: true })
    }

    fn split(split: &Split) -> Option<Cut> {
        let split = split.clone();
        let (keeps_matches, keeps_gaps) = match split.behavior {
            SplitDelimiterBehavior::Isolated => (true, true),
            SplitDelimiterBehavior::Removed => (split.invert, !split.invert),
            _ => return None,
        };
        Some(Cut::Regex { regex: split.regex, keeps_matches, keeps_gaps })
    }

    fn each<E>(&self, text: &str, mut give: impl FnMut(Range<usize>) -> Result<(), E>) -> Result<(), E> {
        let mut done = 0;
        match self {
            Cut::Regex { regex, keeps_matches, keeps_gaps } => {
                for (begin, end) in regex.find_iter(text) {
                    if *keeps_gaps {
                        give(done..begin)?;
                    }
                    if *keeps_matches {
                        give(begin..end)?;
                    }
                    done = end;
                }
                if *keeps_gaps {
                    give(done..text.len())?;
                }
            }
            Cut::Digits { each } => {
                let mut was_digit = false;
                for (place, letter) in text.char_indices() {
                    let is_digit = letter.is_numeric();
                    if is_digit != was_digit || (is_digit && *each) {
                        give(done..place)?;
                        done = place;
                    }
                    was_digit = is_digit;
                }
                give(done..text.len())?;
            }
            Cut::BeforeSpaces { mark, each } => {
                let mut was_space = false;
                for (place, letter) in text.char_indices() {
                    let is_space = letter == ' ' || letter == *mark;
                    if is_space && (*each || !was_space) {
                        give(done..place)?;
                        done = place;
                    }
                    was_space = is_space;
                }
                give(done..text.len())?;
            }
        }
        Ok(())
    }
}

/// The steps of a pre-tokenizer that ends in bytes, and does not add a space in front.
pub fn cuts_of(pre_tokenizer: &PreTokenizerWrapper) -> Option<Vec<Cut>> {
    let one = [pre_tokenizer.clone()];
    let steps: &[PreTokenizerWrapper] = match pre_tokenizer {
        PreTokenizerWrapper::Sequence(sequence) => sequence.as_ref(),
        _ => &one,
    };
    let (PreTokenizerWrapper::ByteLevel(bytes), before) = steps.split_last()? else { return None };
    if bytes.add_prefix_space {
        return None;
    }
    let mut cuts = Vec::new();
    for step in before {
        cuts.push(match step {
            PreTokenizerWrapper::Split(split) => Cut::split(split)?,
            PreTokenizerWrapper::Digits(digits) => Cut::Digits { each: digits.individual_digits },
            _ => return None,
        });
    }
    if bytes.use_regex {
        cuts.push(Cut::all(GPT2_PIECES)?);
    }
    Some(cuts)
}

pub fn cut<E>(
    cuts: &[Cut],
    start: usize,
    text: &str,
    take: &mut dyn FnMut(usize, &str) -> Result<(), E>,
) -> Result<(), E> {
    if text.is_empty() {
        return Ok(());
    }
    match cuts.split_first() {
        None => take(start, text),
        Some((first, rest)) => first.each(text, |part| cut(rest, start + part.start, &text[part], take)),
    }
}
