// SPDX-License-Identifier: Apache-2.0
//! Python's str() and repr(), and what Python takes for a space, a letter or the title case of one.

use unicase::UniCase;
use unicode_categories::UnicodeCategories;

use crate::jinja::error::{descend, fail, reserve, spend, spend_copy, spend_text, Result};
use crate::jinja::values::value::{Value, View};

pub fn float_repr(number: f64) -> String {
    if number.is_nan() {
        return "nan".into();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf".into() } else { "-inf".into() };
    }
    // The shortest digits that read back, in scientific form outside 1e-4 <= |x| < 1e16.
    let size = number.abs();
    if size != 0.0 && !(1e-4..1e16).contains(&size) {
        let text = format!("{number:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let value: i32 = exponent.parse().unwrap_or(0);
        let sign = if value < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", value.abs());
    }
    let text = format!("{number}");
    if text.contains('.') {
        text
    } else {
        format!("{text}.0")
    }
}

pub fn is_space(letter: char) -> bool {
    letter.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&letter)
}

/// str.isprintable() of one letter.
pub fn is_printable(letter: char) -> bool {
    if letter.is_ascii() {
        return (' '..='~').contains(&letter);
    }
    !(letter.is_other_control()
        || letter.is_other_format()
        || letter.is_other_private_use()
        || letter.is_separator())
}

fn write_escape(letter: char, out: &mut String) {
    let code = letter as u32;
    out.push_str(&match code {
        0..=0xff => format!("\\x{code:02x}"),
        0x100..=0xffff => format!("\\u{code:04x}"),
        _ => format!("\\U{code:08x}"),
    });
}

fn write_string(text: &str, out: &mut String) -> Result<()> {
    spend_text(text.len())?;
    reserve(text.len() * 4)?;
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for letter in text.chars() {
        match letter {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            letter if letter == quote => {
                out.push('\\');
                out.push(letter);
            }
            letter if is_printable(letter) => out.push(letter),
            letter => write_escape(letter, out),
        }
    }
    out.push(quote);
    Ok(())
}

fn write_list(values: &[Value], brackets: (&str, &str), out: &mut String) -> Result<()> {
    out.push_str(brackets.0);
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        write_repr(value, out)?;
    }
    out.push_str(brackets.1);
    Ok(())
}

fn write_repr(value: &Value, out: &mut String) -> Result<()> {
    spend(1)?;
    descend()?;
    match value {
        Value::Undefined(_) => out.push_str("Undefined"),
        Value::None => out.push_str("None"),
        Value::Bool(value) => out.push_str(if *value { "True" } else { "False" }),
        Value::Int(value) => out.push_str(&value.to_string()),
        Value::Float(value) => out.push_str(&float_repr(*value)),
        Value::Str(text) if text.markup => {
            out.push_str("Markup(");
            write_string(&text.text, out)?;
            out.push(')');
        }
        Value::Str(text) => write_string(&text.text, out)?,
        Value::List(items) => write_list(&items.values, ("[", "]"), out)?,
        Value::Tuple(items) if items.values.len() == 1 => write_list(&items.values, ("(", ",)"), out)?,
        Value::Tuple(items) => write_list(&items.values, ("(", ")"), out)?,
        Value::Dict(dict) => {
            out.push('{');
            for (index, (key, value)) in dict.pairs().iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_repr(key, out)?;
                out.push_str(": ");
                write_repr(value, out)?;
            }
            out.push('}');
        }
        Value::Range(range) => {
            let stop = range.stop;
            out.push_str(&match range.step {
                1 => format!("range({}, {stop})", range.start),
                step => format!("range({}, {stop}, {step})", range.start),
            });
        }
        Value::View(view, _) => {
            out.push_str(match view {
                View::Keys => "dict_keys(",
                View::Values => "dict_values(",
                View::Pairs => "dict_items(",
            });
            write_list(&value.items()?, ("[", "]"), out)?;
            out.push(')');
        }
        // Python prints an address, which no template can mean.
        Value::Iterator(_) | Value::Function(_) | Value::Method(_) | Value::Object(..) => {
            return fail(format!("a {} cannot be written as text", value.type_name()))
        }
    }
    Ok(())
}

pub fn repr(value: &Value) -> Result<String> {
    let mut out = String::new();
    write_repr(value, &mut out)?;
    Ok(out)
}

/// str().
pub fn str_of(value: &Value) -> Result<String> {
    match value {
        Value::Undefined(_) => Ok(String::new()),
        Value::Str(text) => {
            spend_copy(text.text.len())?;
            reserve(text.text.len())?;
            Ok(text.text.to_string())
        }
        _ => repr(value),
    }
}

pub fn is_cased(letter: char) -> bool {
    letter.is_lowercase() || letter.is_uppercase() || letter.is_letter_titlecase()
}

/// The title case of one letter.
pub fn push_title(letter: char, out: &mut String) {
    match letter {
        'Ǆ'..='ǆ' => out.push('ǅ'),
        'Ǉ'..='ǉ' => out.push('ǈ'),
        'Ǌ'..='ǌ' => out.push('ǋ'),
        'Ǳ'..='ǳ' => out.push('ǲ'),
        '\u{10d0}'..='\u{10ff}' => out.push(letter),
        _ => {
            let mut upper = letter.to_uppercase();
            out.extend(upper.next());
            out.extend(upper.flat_map(char::to_lowercase));
        }
    }
}

pub fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut after_cased = false;
    let lower = text.to_lowercase();
    // The lower case of a word depends on its end (Greek sigma), so it is taken from the lowered whole where that has the
    // same letters.
    let same = lower.chars().count() == text.chars().count();
    let mut lowered = lower.chars();
    for letter in text.chars() {
        let low = lowered.next();
        if !after_cased {
            push_title(letter, &mut out);
        } else if let (true, Some(low)) = (same, low) {
            out.push(low);
        } else {
            out.extend(letter.to_lowercase());
        }
        after_cased = is_cased(letter);
    }
    out
}

pub fn capitalize(text: &str) -> String {
    let mut letters = text.chars();
    let mut out = String::with_capacity(text.len());
    if let Some(first) = letters.next() {
        push_title(first, &mut out);
        out.push_str(&letters.as_str().to_lowercase());
    }
    out
}

pub fn swapcase(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_uppercase() {
            out.extend(letter.to_lowercase());
        } else if letter.is_lowercase() {
            out.extend(letter.to_uppercase());
        } else {
            out.push(letter);
        }
    }
    out
}

pub fn casefold(text: &str) -> String {
    UniCase::unicode(text).to_folded_case()
}

/// str.strip() and its kin.
pub fn strip<'a>(text: &'a str, characters: Option<&str>, left: bool, right: bool) -> &'a str {
    let drop = |letter: char| match characters {
        Some(characters) => characters.contains(letter),
        None => is_space(letter),
    };
    let mut out = text;
    if left {
        out = out.trim_start_matches(drop);
    }
    if right {
        out = out.trim_end_matches(drop);
    }
    out
}

/// str.splitlines().
pub fn lines(text: &str, keep_ends: bool) -> Vec<&str> {
    let mut out = Vec::new();
    let mut begin = 0;
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        if !matches!(
            letter,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        ) {
            continue;
        }
        let mut end = at + letter.len_utf8();
        if letter == '\r' && letters.next_if(|(_, next)| *next == '\n').is_some() {
            end += 1;
        }
        out.push(&text[begin..if keep_ends { end } else { at }]);
        begin = end;
    }
    if begin < text.len() {
        out.push(&text[begin..]);
    }
    out
}

/// markupsafe.escape of plain text.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            letter => out.push(letter),
        }
    }
    out
}
