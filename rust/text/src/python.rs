// SPDX-License-Identifier: Apache-2.0
//! What Python and Jinja2 do where minijinja's own way differs: str() and repr(), json.dumps, methods of str, list and
//! dict, tests, strftime.

use minijinja::value::{from_args, Kwargs, Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

// Nesting that no conversation has; printing recurses.
const MAX_NESTING: usize = 200;

fn failed(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}

fn float_repr(number: f64) -> String {
    if number.is_nan() {
        return "nan".into();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf".into() } else { "-inf".into() };
    }
    // Python's repr: the shortest digits that read back, in scientific form outside 1e-4 <= |x| < 1e16.
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

fn number_text(value: &Value) -> String {
    if value.is_integer() {
        return value.to_string();
    }
    f64::try_from(value.clone()).map_or_else(|_| value.to_string(), float_repr)
}

fn string_repr(text: &str, out: &mut String) {
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
            letter if (letter as u32) < 32 || letter as u32 == 127 => {
                out.push_str(&format!("\\x{:02x}", letter as u32))
            }
            letter => out.push(letter),
        }
    }
    out.push(quote);
}

fn write_repr(value: &Value, depth: usize, out: &mut String) -> Result<(), Error> {
    if depth > MAX_NESTING {
        return Err(failed("a value is nested too deeply to print"));
    }
    match value.kind() {
        ValueKind::String => string_repr(value.as_str().unwrap_or_default(), out),
        ValueKind::Map => {
            out.push('{');
            for (index, key) in value.try_iter()?.enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_repr(&key, depth + 1, out)?;
                out.push_str(": ");
                write_repr(&value.get_item(&key)?, depth + 1, out)?;
            }
            out.push('}');
        }
        ValueKind::Seq | ValueKind::Iterable => {
            out.push('[');
            for (index, item) in value.try_iter()?.enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_repr(&item, depth + 1, out)?;
            }
            out.push(']');
        }
        _ => out.push_str(&text_of(value)?),
    }
    Ok(())
}

/// Python's str().
pub fn text_of(value: &Value) -> Result<String, Error> {
    Ok(match value.kind() {
        ValueKind::Undefined => String::new(),
        ValueKind::None => "None".into(),
        ValueKind::Bool => {
            if value.is_true() {
                "True".into()
            } else {
                "False".into()
            }
        }
        ValueKind::Number => number_text(value),
        ValueKind::String => value.as_str().unwrap_or_default().into(),
        ValueKind::Map | ValueKind::Seq | ValueKind::Iterable => {
            let mut out = String::new();
            write_repr(value, 0, &mut out)?;
            out
        }
        _ => value.to_string(),
    })
}

struct JsonStyle {
    indent: Option<String>,
    item_separator: String,
    key_separator: String,
    sort_keys: bool,
    ascii: bool,
}

fn json_string(text: &str, style: &JsonStyle, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            letter if (letter as u32) < 32 => out.push_str(&format!("\\u{:04x}", letter as u32)),
            letter if style.ascii && !letter.is_ascii() => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
}

fn json_break(style: &JsonStyle, depth: usize, out: &mut String) {
    if let Some(indent) = &style.indent {
        out.push('\n');
        out.push_str(&indent.repeat(depth));
    }
}

fn write_json(value: &Value, style: &JsonStyle, depth: usize, out: &mut String) -> Result<(), Error> {
    if depth > MAX_NESTING {
        return Err(failed("tojson: a value is nested too deeply"));
    }
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => match number_text(value).as_str() {
            "nan" => out.push_str("NaN"),
            "inf" => out.push_str("Infinity"),
            "-inf" => out.push_str("-Infinity"),
            text => out.push_str(text),
        },
        ValueKind::String => json_string(value.as_str().unwrap_or_default(), style, out),
        ValueKind::Map => {
            let mut keys: Vec<Value> = value.try_iter()?.collect();
            if style.sort_keys {
                keys.sort();
            }
            out.push('{');
            for (index, key) in keys.iter().enumerate() {
                if index > 0 {
                    out.push_str(&style.item_separator);
                }
                json_break(style, depth + 1, out);
                let name = match key.kind() {
                    ValueKind::None => "null".into(),
                    ValueKind::Bool => key.to_string(),
                    _ => text_of(key)?,
                };
                json_string(&name, style, out);
                out.push_str(&style.key_separator);
                write_json(&value.get_item(key)?, style, depth + 1, out)?;
            }
            if !keys.is_empty() {
                json_break(style, depth, out);
            }
            out.push('}');
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let mut empty = true;
            out.push('[');
            for item in value.try_iter()? {
                if !empty {
                    out.push_str(&style.item_separator);
                }
                empty = false;
                json_break(style, depth + 1, out);
                write_json(&item, style, depth + 1, out)?;
            }
            if !empty {
                json_break(style, depth, out);
            }
            out.push(']');
        }
        kind => return Err(failed(format!("tojson: a value of type {kind} is not JSON"))),
    }
    Ok(())
}

/// json.dumps as Hugging Face calls it: no HTML escapes, letters kept as they are.
pub fn tojson(value: Value, positional_ascii: Option<bool>, options: Kwargs) -> Result<Value, Error> {
    let indent: Option<Value> = options.get("indent")?;
    let indent = indent.filter(|indent| !indent.is_none()).map(|indent| match indent.as_str() {
        Some(text) => text.to_string(),
        None => " ".repeat(indent.as_usize().unwrap_or(0).min(64)),
    });
    let separators: Option<Vec<String>> = options.get::<Option<Vec<String>>>("separators")?;
    let mut style = JsonStyle {
        item_separator: if indent.is_some() { ",".into() } else { ", ".into() },
        key_separator: ": ".into(),
        indent,
        sort_keys: options.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
        ascii: options.get::<Option<bool>>("ensure_ascii")?.or(positional_ascii).unwrap_or(false),
    };
    if let Some(separators) = separators {
        if separators.len() != 2 {
            return Err(failed("tojson: separators wants two strings"));
        }
        style.item_separator = separators[0].clone();
        style.key_separator = separators[1].clone();
    }
    options.assert_all_used()?;
    let mut out = String::new();
    write_json(&value, &style, 0, &mut out)?;
    Ok(Value::from(out))
}

/// datetime.now().strftime(format).
pub fn strftime_now(format: &str) -> Result<String, Error> {
    let wanted = std::ffi::CString::new(format).map_err(|_| failed("strftime_now: NUL in the format"))?;
    let mut out = vec![0u8; 4096];
    // SAFETY: plain C calls on local buffers; strftime writes at most out.len() bytes.
    let size = unsafe {
        let now = libc::time(std::ptr::null_mut());
        let mut parts: libc::tm = std::mem::zeroed();
        libc::localtime_r(&now, &mut parts);
        libc::strftime(out.as_mut_ptr().cast(), out.len(), wanted.as_ptr(), &parts)
    };
    out.truncate(size);
    String::from_utf8(out).map_err(|_| failed("strftime_now: the format is not UTF-8"))
}

fn python_strip(text: &str, characters: Option<&str>, left: bool, right: bool) -> String {
    let drop = |letter: char| match characters {
        Some(characters) => characters.contains(letter),
        None => letter.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&letter),
    };
    let mut out = text;
    if left {
        out = out.trim_start_matches(drop);
    }
    if right {
        out = out.trim_end_matches(drop);
    }
    out.into()
}

fn split_from(
    text: &str,
    separator: Option<&str>,
    limit: Option<i64>,
    from_right: bool,
) -> Result<Vec<String>, Error> {
    let limit = limit.filter(|limit| *limit >= 0).map_or(usize::MAX, |limit| limit as usize);
    if separator == Some("") {
        return Err(failed("split: empty separator"));
    }
    let mut parts: Vec<String> = Vec::new();
    let mut rest = if separator.is_none() { text.trim() } else { text };
    let found = |rest: &str| -> Option<(usize, usize)> {
        match (separator, from_right) {
            (Some(separator), false) => rest.find(separator).map(|at| (at, at + separator.len())),
            (Some(separator), true) => rest.rfind(separator).map(|at| (at, at + separator.len())),
            (None, false) => {
                rest.find(char::is_whitespace).map(|at| (at, rest.len() - rest[at..].trim_start().len()))
            }
            (None, true) => rest
                .char_indices()
                .rfind(|(_, letter)| letter.is_whitespace())
                .map(|(at, letter)| (rest[..at].trim_end().len(), at + letter.len_utf8())),
        }
    };
    while parts.len() < limit {
        let Some((begin, end)) = found(rest) else { break };
        if from_right {
            parts.push(rest[end..].into());
            rest = &rest[..begin];
        } else {
            parts.push(rest[..begin].into());
            rest = &rest[end..];
        }
    }
    if separator.is_some() || !rest.is_empty() {
        parts.push(rest.into());
    }
    if from_right {
        parts.reverse();
    }
    Ok(parts)
}

fn partition(text: &str, separator: &str, from_right: bool) -> Vec<String> {
    let at = if from_right { text.rfind(separator) } else { text.find(separator) };
    match at {
        Some(at) => vec![text[..at].into(), separator.into(), text[at + separator.len()..].into()],
        None if from_right => vec![String::new(), String::new(), text.into()],
        None => vec![text.into(), String::new(), String::new()],
    }
}

fn string_method(text: &str, method: &str, args: &[Value]) -> Option<Result<Value, Error>> {
    fn strip(text: &str, args: &[Value], left: bool, right: bool) -> Result<Value, Error> {
        let (characters,): (Option<&str>,) = from_args(args)?;
        Ok(python_strip(text, characters, left, right).into())
    }
    fn split(text: &str, args: &[Value], from_right: bool) -> Result<Value, Error> {
        let (separator, limit, options): (Option<&str>, Option<i64>, Kwargs) = from_args(args)?;
        let named: Option<i64> = options.get("maxsplit")?;
        let named_separator: Option<&str> = options.get("sep")?;
        options.assert_all_used()?;
        Ok(split_from(text, separator.or(named_separator), limit.or(named), from_right)?.into())
    }
    fn one(args: &[Value]) -> Result<&str, Error> {
        let (argument,): (&str,) = from_args(args)?;
        Ok(argument)
    }
    Some(match method {
        "strip" => strip(text, args, true, true),
        "lstrip" => strip(text, args, true, false),
        "rstrip" => strip(text, args, false, true),
        "split" => split(text, args, false),
        "rsplit" => split(text, args, true),
        "removeprefix" => one(args).map(|prefix| text.strip_prefix(prefix).unwrap_or(text).into()),
        "removesuffix" => one(args).map(|suffix| text.strip_suffix(suffix).unwrap_or(text).into()),
        "partition" => one(args).map(|separator| partition(text, separator, false).into()),
        "rpartition" => one(args).map(|separator| partition(text, separator, true).into()),
        "casefold" => Ok(text.to_lowercase().into()),
        "swapcase" => Ok(text
            .chars()
            .map(|letter| {
                if letter.is_uppercase() {
                    letter.to_lowercase().to_string()
                } else {
                    letter.to_uppercase().to_string()
                }
            })
            .collect::<String>()
            .into()),
        "index" => one(args).and_then(|wanted| match text.find(wanted) {
            Some(at) => Ok(Value::from(text[..at].chars().count())),
            None => Err(failed("index: substring not found")),
        }),
        "zfill" => from_args::<(usize,)>(args).map(|(width,)| {
            let (sign, digits) = text.split_at(usize::from(text.starts_with(['-', '+'])));
            let fill = width.min(4096).saturating_sub(text.chars().count());
            format!("{sign}{}{digits}", "0".repeat(fill)).into()
        }),
        _ => return None,
    })
}

/// Methods of Python values: ours where minijinja-contrib has none or differs, its own for the rest.
pub fn method(state: &State, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    if let Some(text) = value.as_str() {
        if let Some(result) = string_method(text, method, args) {
            return result;
        }
    }
    if value.kind() == ValueKind::Seq && method == "index" {
        let (wanted,): (Value,) = from_args(args)?;
        let found = value.try_iter()?.position(|item| item == wanted);
        return found.map(Value::from).ok_or_else(|| failed("index: value is not in the list"));
    }
    if value.kind() == ValueKind::Map && method == "copy" {
        return Ok(value.clone());
    }
    minijinja_contrib::pycompat::unknown_method_callback(state, value, method, args)
}

/// Jinja2's `iterable` and `sequence` hold for what Python can iterate or index: strings and maps too.
pub fn is_iterable(value: &Value) -> bool {
    matches!(
        value.kind(),
        ValueKind::String | ValueKind::Seq | ValueKind::Map | ValueKind::Iterable | ValueKind::Undefined
    )
}

pub fn is_sequence(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::String | ValueKind::Seq | ValueKind::Map | ValueKind::Undefined)
}
