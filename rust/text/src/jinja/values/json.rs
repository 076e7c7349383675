// SPDX-License-Identifier: Apache-2.0
//! json.dumps as transformers calls it for `tojson` (no HTML escapes, letters kept), and values from JSON.

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::jinja::error::{descend, fail, reserve, spend, spend_text, Result};
use crate::jinja::values::arguments::Arguments;
use crate::jinja::values::order::{compare, sort_by};
use crate::jinja::values::text::float_repr;
use crate::jinja::values::value::{Dict, Value};

struct Style {
    indent: Option<String>,
    item_separator: String,
    key_separator: String,
    sort_keys: bool,
    ascii: bool,
}

fn write_string(text: &str, style: &Style, out: &mut String) -> Result<()> {
    spend_text(text.len())?;
    reserve(text.len() * 6)?;
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
            letter if style.ascii && (!letter.is_ascii() || letter == '\u{7f}') => {
                if letter == '\u{7f}' {
                    out.push(letter);
                    continue;
                }
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
    Ok(())
}

fn write_break(style: &Style, depth: usize, out: &mut String) -> Result<()> {
    if let Some(indent) = &style.indent {
        let size = indent.len().saturating_mul(depth);
        reserve(size)?;
        spend_text(size)?;
        out.push('\n');
        out.push_str(&indent.repeat(depth));
    }
    Ok(())
}

fn write_float(value: f64, out: &mut String) {
    out.push_str(&match value {
        value if value.is_nan() => "NaN".into(),
        value if value.is_infinite() => (if value > 0.0 { "Infinity" } else { "-Infinity" }).into(),
        value => float_repr(value),
    });
}

fn key_text(key: &Value) -> Result<String> {
    Ok(match key {
        Value::Str(text) => text.text.to_string(),
        Value::None => "null".into(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => {
            let mut out = String::new();
            write_float(*value, &mut out);
            out
        }
        _ => {
            return fail(format!(
                "tojson: keys must be str, int, float, bool or None, not {}",
                key.type_name()
            ))
        }
    })
}

fn write_dict(dict: &Dict, style: &Style, depth: usize, out: &mut String) -> Result<()> {
    let mut pairs: Vec<&(Value, Value)> = dict.pairs().iter().collect();
    if style.sort_keys {
        sort_by(&mut pairs, |left, right| compare(&left.0, &right.0), false)?;
    }
    out.push('{');
    for (index, (key, value)) in pairs.iter().enumerate() {
        if index > 0 {
            out.push_str(&style.item_separator);
        }
        write_break(style, depth + 1, out)?;
        write_string(&key_text(key)?, style, out)?;
        out.push_str(&style.key_separator);
        write(value, style, depth + 1, out)?;
    }
    if !pairs.is_empty() {
        write_break(style, depth, out)?;
    }
    out.push('}');
    Ok(())
}

fn write(value: &Value, style: &Style, depth: usize, out: &mut String) -> Result<()> {
    spend(1)?;
    descend()?;
    match value {
        Value::None => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Int(value) => out.push_str(&value.to_string()),
        Value::Float(value) => write_float(*value, out),
        Value::Str(text) => write_string(&text.text, style, out)?,
        Value::Dict(dict) => write_dict(dict, style, depth, out)?,
        Value::List(items) | Value::Tuple(items) => {
            out.push('[');
            for (index, item) in items.values.iter().enumerate() {
                if index > 0 {
                    out.push_str(&style.item_separator);
                }
                write_break(style, depth + 1, out)?;
                write(item, style, depth + 1, out)?;
            }
            if !items.values.is_empty() {
                write_break(style, depth, out)?;
            }
            out.push(']');
        }
        _ => return fail(format!("tojson: a value of type {} is not JSON", value.type_name())),
    }
    Ok(())
}

fn separators(value: &Value) -> Result<(String, String)> {
    let items = value.items()?;
    match items.as_slice() {
        [Value::Str(item), Value::Str(key)] => Ok((item.text.to_string(), key.text.to_string())),
        _ => fail("tojson: separators needs two strings"),
    }
}

pub fn to_json(value: &Value, arguments: Arguments) -> Result<Value> {
    let names = ["ensure_ascii", "indent", "separators", "sort_keys"];
    let [ascii, indent, given, sort_keys] = arguments.bind("tojson", names, 0)?;
    let indent = match indent {
        None | Some(Value::None) => None,
        Some(Value::Str(text)) => Some(text.text.to_string()),
        Some(value) => match value.as_index() {
            Some(count) if count <= 4096 => Some(" ".repeat(count.max(0) as usize)),
            _ => return fail("tojson: indent needs None, a text or a small number"),
        },
    };
    let (item_separator, key_separator) = match given {
        None | Some(Value::None) => ((if indent.is_some() { "," } else { ", " }).into(), ": ".into()),
        Some(given) => separators(&given)?,
    };
    let holds = |value: Option<Value>| value.is_some_and(|value| value.is_true());
    let style =
        Style { indent, item_separator, key_separator, sort_keys: holds(sort_keys), ascii: holds(ascii) };
    let mut out = String::new();
    write(value, &style, 0, &mut out)?;
    Ok(out.into())
}

/// A value of a JSON text; how deep it may nest is limited by the reader.
struct FromJson;

impl<'de> Visitor<'de> for FromJson {
    type Value = Value;

    fn expecting(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        formatter.write_str("a JSON value")
    }
    fn visit_unit<E: de::Error>(self) -> std::result::Result<Value, E> {
        Ok(Value::None)
    }
    fn visit_bool<E: de::Error>(self, value: bool) -> std::result::Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_i64<E: de::Error>(self, value: i64) -> std::result::Result<Value, E> {
        Ok(Value::Int(value.into()))
    }
    fn visit_u64<E: de::Error>(self, value: u64) -> std::result::Result<Value, E> {
        Ok(Value::Int(value.into()))
    }
    fn visit_f64<E: de::Error>(self, value: f64) -> std::result::Result<Value, E> {
        Ok(Value::Float(value))
    }
    fn visit_str<E: de::Error>(self, text: &str) -> std::result::Result<Value, E> {
        spend_text(text.len()).map_err(|error| E::custom(error.message))?;
        Ok(text.into())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> std::result::Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = items.next_element()? {
            values.push(value);
        }
        Value::list(values).map_err(|error| de::Error::custom(error.message))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> std::result::Result<Value, A::Error> {
        let mut dict = Dict::default();
        while let Some((key, value)) = pairs.next_entry::<Value, Value>()? {
            dict.insert(key, value).map_err(|error| de::Error::custom(error.message))?;
        }
        Ok(Value::dict(dict))
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> std::result::Result<Value, D::Error> {
        spend(1).map_err(|error| de::Error::custom(error.message))?;
        reader.deserialize_any(FromJson)
    }
}
