// SPDX-License-Identifier: Apache-2.0
//! What the methods of str do, on plain text. Positions count letters, not bytes.

use std::rc::Rc;

use unicode_categories::UnicodeCategories;

use crate::jinja::error::{fail, reserve, spend, spend_copy, spend_text, Result};
use crate::jinja::values::text::{is_cased, is_space, lines, strip};

/// A list of text as Python's str.join takes it.
pub fn join_texts(separator: &str, parts: &[Rc<str>]) -> Result<String> {
    let size = parts.iter().map(|part| part.len()).sum::<usize>()
        + separator.len().saturating_mul(parts.len().saturating_sub(1));
    reserve(size)?;
    spend_copy(size)?;
    let mut out = String::with_capacity(size);
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            out.push_str(separator);
        }
        out.push_str(part);
    }
    Ok(out)
}

pub fn pad(text: String, width: usize, fill: char, align: char) -> Result<String> {
    let size = text.chars().count();
    if size >= width {
        return Ok(text);
    }
    let missing = width - size;
    reserve(missing.saturating_mul(fill.len_utf8()))?;
    spend(1 + missing / 32)?;
    let left = match align {
        '<' => 0,
        '^' => missing / 2,
        _ => missing,
    };
    let fills = |count: usize| std::iter::repeat_n(fill, count).collect::<String>();
    Ok(fills(left) + &text + &fills(missing - left))
}

/// str.split and str.rsplit.
pub fn split(text: &str, separator: Option<&str>, limit: i128, from_right: bool) -> Result<Vec<String>> {
    if separator == Some("") {
        return fail("empty separator");
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut parts: Vec<String> = Vec::new();
    let mut rest = match (separator, from_right) {
        (Some(_), _) => text,
        (None, false) => text.trim_start_matches(is_space),
        (None, true) => text.trim_end_matches(is_space),
    };
    while parts.len() < limit {
        let found = match (separator, from_right) {
            (Some(separator), false) => rest.find(separator).map(|at| (at, at + separator.len())),
            (Some(separator), true) => rest.rfind(separator).map(|at| (at, at + separator.len())),
            (None, false) => {
                rest.find(is_space).map(|at| (at, rest.len() - rest[at..].trim_start_matches(is_space).len()))
            }
            (None, true) => rest.rfind(is_space).map(|at| {
                let after = at + rest[at..].chars().next().map_or(0, char::len_utf8);
                (rest[..after].trim_end_matches(is_space).len(), after)
            }),
        };
        let Some((begin, end)) = found else { break };
        spend(1)?;
        let (part, remaining) =
            if from_right { (&rest[end..], &rest[..begin]) } else { (&rest[..begin], &rest[end..]) };
        if separator.is_none() && part.is_empty() {
            break;
        }
        parts.push(part.into());
        rest = remaining;
    }
    if separator.is_some() {
        parts.push(rest.into());
    } else {
        // With a limit the last part keeps the white space at its far end.
        let last = if from_right { strip(rest, None, false, true) } else { strip(rest, None, true, false) };
        if !last.is_empty() {
            parts.push(last.into());
        }
    }
    if from_right {
        parts.reverse();
    }
    Ok(parts)
}

pub fn split_lines(text: &str, keep_ends: bool) -> Result<Vec<String>> {
    let mut parts = Vec::new();
    for line in lines(text, keep_ends) {
        spend(1)?;
        parts.push(line.to_string());
    }
    Ok(parts)
}

/// str.replace, with a negative count for all.
pub fn replace(whole: &str, old: &str, new: &str, count: i128) -> Result<String> {
    let limit = usize::try_from(count).unwrap_or(usize::MAX);
    let found = whole.matches(old).take(limit).count();
    let size = whole.len().saturating_add(found.saturating_mul(new.len()));
    reserve(size)?;
    spend_text(size)?;
    spend(found)?;
    Ok(whole.replacen(old, new, limit))
}

/// str.center: if the number of spaces is odd, the extra one is on the left when the width is odd.
pub fn center(receiver: &str, width: usize, fill: char) -> Result<String> {
    let size = receiver.chars().count();
    if width <= size {
        return Ok(receiver.into());
    }
    let missing = width - size;
    let left = missing / 2 + (missing & width & 1);
    pad(pad(receiver.into(), size + left, fill, '>')?, width, fill, '<')
}

pub fn is_decimal(letter: char) -> bool {
    letter.is_number_decimal_digit()
}

pub fn is_digit(letter: char) -> bool {
    is_decimal(letter) || matches!(letter, '²' | '³' | '¹' | '⁰' | '⁴'..='⁹' | '₀'..='₉')
}

/// Letters alone: Unicode's Alphabetic has marks, numerals and circled letters too.
pub fn is_alpha(letter: char) -> bool {
    let other = letter.is_mark() || letter.is_number() || letter.is_symbol();
    letter.is_alphabetic() && (letter.is_ascii() || !other)
}

/// \w of Python's re.
pub fn is_word(letter: char) -> bool {
    letter == '_' || is_alpha(letter) || letter.is_numeric()
}

pub fn is_upper(text: &str) -> bool {
    text.chars().any(char::is_uppercase)
        && !text.chars().any(|letter| letter.is_lowercase() || letter.is_letter_titlecase())
}

pub fn is_lower(text: &str) -> bool {
    text.chars().any(char::is_lowercase)
        && !text.chars().any(|letter| letter.is_uppercase() || letter.is_letter_titlecase())
}

pub fn is_title(text: &str) -> bool {
    let mut after_cased = false;
    let mut any = false;
    for letter in text.chars() {
        let upper = letter.is_uppercase() || letter.is_letter_titlecase();
        if upper && after_cased || letter.is_lowercase() && !after_cased {
            return false;
        }
        after_cased = is_cased(letter);
        any |= after_cased;
    }
    any
}

fn without(mut whole: String, open: &str, close: &str) -> Result<String> {
    while let Some(begin) = whole.find(open) {
        spend_text(whole.len())?;
        let Some(end) = whole[begin..].find(close) else { break };
        whole.replace_range(begin..begin + end + close.len(), "");
    }
    Ok(whole)
}

/// Markup.striptags().
pub fn strip_tags(whole: &str) -> Result<String> {
    let bare = without(without(whole.into(), "<!--", "-->")?, "<", ">")?;
    let words: Vec<&str> = bare.split(is_space).filter(|word| !word.is_empty()).collect();
    let text = words.join(" ");
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let entities =
            [("&amp;", '&'), ("&lt;", '<'), ("&gt;", '>'), ("&#34;", '"'), ("&#39;", '\''), ("&quot;", '"')];
        match entities.iter().find(|(entity, _)| rest.starts_with(entity)) {
            Some((entity, letter)) => {
                out.push(*letter);
                rest = &rest[entity.len()..];
            }
            None if rest[1..].starts_with(|letter: char| letter.is_alphabetic() || letter == '#') => {
                return fail("striptags: an HTML entity that is not supported")
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    Ok(out)
}
